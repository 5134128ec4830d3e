// Structured logs on standard error; standard output belongs to the answers of commands.
import { type DestinationStream, type Logger, pino } from 'pino'

export type Log = Logger
export type LogFormat = 'pretty' | 'json'

/** A logger on standard error: one JSON object a line, or one short line for people. */
export function createLog(level: string, format: LogFormat): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime }
  return format === 'json' ? pino(options, pino.destination({ fd: 2, sync: false })) : pino(options, pretty())
}

/** Swallows everything; for tests and for commands whose own output is all there is to say. */
export const silentLog: Log = pino({ enabled: false })

const labels: Record<number, string> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'ERROR',
  60: 'FATAL',
}

function pretty(): DestinationStream {
  return {
    write(line) {
      const { level, time, msg, err, ...rest } = JSON.parse(line)
      const fields = Object.entries(rest).map(
        ([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
      )
      const stack = err?.stack ? `\n${err.stack}` : ''
      process.stderr.write(
        `${time.slice(11, 23)} ${(labels[level] ?? level).padEnd(5)} ${msg ?? ''}${fields.join('')}${stack}\n`,
      )
    },
  }
}
