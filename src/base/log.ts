// Structured logs on standard error. Standard output is for the output of commands.
import { hostname } from 'node:os'
import { type Logger, pino } from 'pino'

export type Log = Logger
export type LogFormat = 'pretty' | 'json'

/** Makes a logger on standard error, or `stream`: JSON lines, or short lines for people. Each line names its node. */
export function createLog(
  level: string,
  format: LogFormat,
  stream?: NodeJS.WritableStream,
  node = hostname(),
): Log {
  const options = { level, base: { node }, timestamp: pino.stdTimeFunctions.isoTime }
  const write = (text: string) => void (stream ?? process.stderr).write(text)
  if (format === 'pretty') return pino(options, { write: (line: string) => write(prettyLine(line)) })
  // Collectors know levels by their names.
  const formatters = { level: (label: string) => ({ level: label }) }
  return pino({ ...options, formatters }, stream ? { write } : pino.destination({ fd: 2, sync: false }))
}

/** Discards everything, for tests and for commands that print their own output. */
export const silentLog: Log = pino({ enabled: false })

const labels: Record<number, string> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'ERROR',
  60: 'FATAL',
}

/** `2026-11-21 09:00:00.123Z web-1 info  mail filed message=msg_…`, with the stack of an error below it. */
export function prettyLine(line: string): string {
  const { level, time, node, msg, err, ...rest } = JSON.parse(line)
  const fields = Object.entries(rest).map(
    ([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const stack = err?.stack ? `\n${err.stack}` : ''
  const label = (labels[level] ?? String(level)).padEnd(5)
  return `${time.replace('T', ' ')} ${node} ${label} ${msg ?? ''}${fields.join('')}${stack}\n`
}
