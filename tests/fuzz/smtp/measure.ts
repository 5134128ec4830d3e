// Loads into the service before its code: on SIGUSR2 it collects garbage and writes the remaining memory and handles.
import { renameSync, writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

export interface Measure {
  rssBytes: number
  heapBytes: number
  externalBytes: number
  /** Number of resources of each kind that keeps the program alive. */
  resources: Record<string, number>
}

const file = process.env['FUZZ_MEASURES']

if (file && isMainThread) {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  process.on('SIGUSR2', () => {
    collect()
    collect()
    const { rss, heapUsed, external } = process.memoryUsage()
    const resources: Record<string, number> = {}
    for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1
    const measure: Measure = { rssBytes: rss, heapBytes: heapUsed, externalBytes: external, resources }
    writeFileSync(`${file}.new`, JSON.stringify(measure))
    renameSync(`${file}.new`, file)
  })
}
