// A reporter of node:test: the ten test files that took longest, at the end.
import { relative, resolve } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

const root = resolve(import.meta.dirname, '..')

export default async function* reportSlowest(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files: { file: string; seconds: number }[] = []
  for await (const { type, data } of events)
    if (type === 'test:summary' && data.file)
      files.push({ file: relative(root, data.file), seconds: data.duration_ms / 1000 })
  files.sort((a, b) => b.seconds - a.seconds)
  yield '\nThe slowest files:\n'
  for (const { file, seconds } of files.slice(0, 10)) yield `${seconds.toFixed(1).padStart(8)} s  ${file}\n`
}
