// A reporter of node:test: at the end, the ten test files that took longest, and a line for each test that failed.
import { relative, resolve } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

const root = resolve(import.meta.dirname, '..')

export default async function* summarize(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files: { file: string; seconds: number }[] = []
  const failed: string[] = []
  for await (const { type, data } of events) {
    if (type === 'test:summary' && data.file)
      files.push({ file: relative(root, data.file), seconds: data.duration_ms / 1000 })
    if (type === 'test:fail' && !areItsTests(data.details.error))
      failed.push(
        `FAILED ${relative(root, data.file ?? '')}:${data.line}: ${data.name}: ${inOneLine(data.details.error)}\n`,
      )
  }
  files.sort((a, b) => b.seconds - a.seconds)
  yield '\nThe slowest files:\n'
  for (const { file, seconds } of files.slice(0, 10)) yield `${seconds.toFixed(1).padStart(8)} s  ${file}\n`
  yield* failed
}

/** Whether a test failed for those within it, which have lines of their own. */
function areItsTests(error: Error & { failureType?: string }): boolean {
  return error.failureType === 'subtestsFailed'
}

function inOneLine(error: Error): string {
  const { message } = error.cause instanceof Error ? error.cause : error
  return message.replaceAll(/\s+/g, ' ').slice(0, 300)
}
