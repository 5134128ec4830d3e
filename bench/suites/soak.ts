// Soak: two workers on S3 under a mixed load for `--minutes`. Shows whether memory, handles, connections and tables stay flat.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { drawPanels, type Panel } from '../line-chart.ts'
import { startDns } from '../load/dns.ts'
import { type Done, prepareMixed, runMixed, verifiedSender } from '../load/mixed.ts'
import { repeat } from '../load/schedule.ts'
import { startSink } from '../load/smtp.ts'
import { startPosthorn } from '../peers/posthorn.ts'
import { openSession, shareDatabase } from '../peers/posthorn-store.ts'
import { startS3 } from '../peers/s3.ts'
import { takeSample } from '../peers/soak-watch.ts'
import type { Plan } from '../plan.ts'
import { type Sample, spread } from '../rounds.ts'

/** Figures over time. All samples have the same names. */
interface Course {
  minutes: number[]
  samples: Sample[]
  /** Why a sample could not be taken, such as a worker that ended. */
  missed: string[]
}

const workers = 2
/** Mails in a second, and as many sends. */
const usualRate = 4
const sampleMs = 10_000
/** This part of the time does not count: caches fill, code compiles, and mail accumulates until the first deletion. */
const warmShare = 1 / 3
/** A figure is flat if its trend, with its error, changes it by less than this in an hour. */
const flatPercent = 5
/** The samples among which the lowest value of a heap or of buffers counts: two minutes of them. */
const collectedSamples = 12
/** The smallest change in an hour that counts, for figures near zero: MB, handles, objects. */
const flatLeast = 3

export async function benchSoak(scope: Scope, plan: Plan): Promise<void> {
  const folder = temporaryFolder(scope, 'soak')
  const sink = await startSink(scope, folder)
  const { address } = await startDns(scope, verifiedSender.zone, 'example')
  const s3 = await startS3(scope)
  const env = { ...s3.env, POSTHORN_BLOB_URL: s3.url }
  const posthorn = await startPosthorn(scope, { workers, env, dns: address, onward: sink.port })
  const session = await openSession(scope, await shareDatabase(scope, posthorn.dataFolder))
  const load = await prepareMixed(scope, posthorn, session)
  const course: Course = { minutes: [], samples: [], missed: [] }
  const startedMs = performance.now()
  const over = new AbortController()
  const look = async () => {
    const minute = (performance.now() - startedMs) / 60_000
    course.samples.push(await takeSample(posthorn, session, s3))
    course.minutes.push(minute)
    writeFileSync(join(plan.outFolder, 'soak.csv'), formatCsv(course))
  }
  // A soak goes on without the sample, and reports it.
  const noted = () => look().catch((error) => void course.missed.push((error as Error).message))
  const watched = repeat(noted, Math.min(sampleMs, plan.soakMs / 12), over.signal)
  try {
    const done = await runMixed(load, plan.soakMs, plan.topRate ?? usualRate)
    over.abort()
    await watched
    report(plan, course, done, sink.count())
  } finally {
    over.abort()
    await watched
  }
}

function report(plan: Plan, course: Course, done: Done, sunk: number): void {
  const { failures: refused, ...counts } = done
  const failures = [...refused, ...course.missed]
  const minutes = plan.soakMs / 60_000
  const title = `${minutes} minutes of mixed load: ${workers} workers, blobs on S3`
  writeFileSync(join(plan.outFolder, 'soak.svg'), draw(title, course, minutes * warmShare))
  plan.print(`soak, ${title}`)
  const listed = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  plan.print(`  ${listed.join(', ')}; at the sink ${sunk}; failures ${failures.length}`)
  for (const failure of new Set(failures)) plan.print(`  failure: ${failure}`)
  plan.print(formatTrends(course, minutes * warmShare))
}

/** One line for each figure: its median, its trend in an hour, and whether it is flat. */
export function formatTrends({ minutes, samples }: Course, warmMinutes: number): string {
  const first = minutes.findIndex((minute) => minute >= warmMinutes)
  const lines = Object.keys(samples[0] ?? {}).map((name) => {
    const all = samples.slice(first).map((sample) => sample[name]!)
    // Heap and buffers grow until they are collected. Their lowest values show whether something is never freed.
    const bin = /^(?:heap|buffers) of /.test(name) ? collectedSamples : 1
    const values = lowestOf(all, bin)
    const times = values.map((_, index) => minutes[first + index * bin]!)
    const { min, median, max } = spread(values) ?? { min: 0, median: 0, max: 0 }
    const trend = trendOf(times, values)
    const [hourly, error] = [60 * trend.slope, 60 * trend.error]
    const bound = Math.max(flatLeast, (median * flatPercent) / 100)
    const verdict =
      Math.abs(hourly) + 2 * error < bound
        ? 'flat'
        : Math.abs(hourly) - 2 * error < bound
          ? 'unclear'
          : hourly < 0
            ? 'falls'
            : 'grows'
    const range = `${min.toFixed(1)} to ${max.toFixed(1)}`
    const figures = `${hourly >= 0 ? '+' : ''}${hourly.toFixed(2)} ± ${(2 * error).toFixed(2)} in an hour`
    return `  ${name.padEnd(24)} median ${median.toFixed(1).padStart(8)}, ${range.padEnd(18)} ${figures}: ${verdict}`
  })
  const bound = `flat: with its error less than ${flatPercent} % of the median or ${flatLeast} in an hour, after ${warmMinutes.toFixed(0)} minutes`
  return [`  ${bound}`, ...lines, ''].join('\n')
}

/** Returns the lowest value of each `size` values. */
function lowestOf(values: readonly number[], size: number): number[] {
  const bins = Math.floor(values.length / size)
  return Array.from({ length: bins }, (_, bin) => Math.min(...values.slice(bin * size, (bin + 1) * size)))
}

/** Returns the slope of the least squares per unit of `times`, and its standard error. */
function trendOf(times: readonly number[], values: readonly number[]): { slope: number; error: number } {
  if (times.length < 3) return { slope: 0, error: Number.POSITIVE_INFINITY }
  const mean = (all: readonly number[]) => all.reduce((sum, value) => sum + value, 0) / all.length
  const [time, value] = [mean(times), mean(values)]
  const below = times.reduce((sum, at) => sum + (at - time) ** 2, 0)
  const slope = times.reduce((sum, at, index) => sum + (at - time) * (values[index]! - value), 0) / below
  const rest = times.reduce((sum, at, index) => sum + (values[index]! - value - slope * (at - time)) ** 2, 0)
  return { slope, error: Math.sqrt(rest / (times.length - 2) / below) }
}

function draw(title: string, { minutes, samples }: Course, warmUntil: number): string {
  const lines = (wanted: RegExp) =>
    Object.keys(samples[0] ?? {})
      .filter((name) => wanted.test(name))
      .map((name) => ({ name: name.replace(wanted, ''), values: samples.map((sample) => sample[name]!) }))
  const panels: Panel[] = [
    { title: 'Resident memory', unit: 'MB', lines: lines(/^(?:RSS|PSS) of /) },
    { title: 'Threads', unit: 'threads', lines: lines(/^threads of /) },
    { title: 'Used heap', unit: 'MB', lines: lines(/^heap of /) },
    { title: 'Buffers outside the heap', unit: 'MB', lines: lines(/^buffers of /) },
    { title: 'Open files and sockets', unit: 'handles', lines: lines(/^handles of /) },
    { title: 'PostgreSQL', unit: 'sessions', lines: lines(/^(?=connections$)/) },
    {
      title: 'Mail, which is deleted after 5 minutes',
      unit: 'MB',
      lines: lines(/^(?=(?:tables|indexes) of mail$)/),
    },
    {
      title: 'Records, which are kept for 7 days or more',
      unit: 'MB',
      lines: lines(/^(?=(?:tables|indexes) of records$)/),
    },
    { title: 'Stored messages', unit: 'messages', lines: lines(/^(?=stored messages$)/) },
    { title: 'Large messages', unit: 'objects', lines: lines(/^(?=objects on S3$)/) },
  ]
  return drawPanels(title, panels, { minutes, warmUntil })
}

function formatCsv({ minutes, samples }: Course): string {
  const names = Object.keys(samples[0] ?? {})
  const rows = samples.map((sample, index) =>
    [minutes[index]?.toFixed(2), ...names.map((name) => sample[name]?.toFixed(2))].join(','),
  )
  return `${['minute', ...names].join(',')}\n${rows.join('\n')}\n`
}
