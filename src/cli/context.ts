// What commands share: settings, the foundation they stand on for a moment, and how they print.
import { createLog } from '../base/log.ts'
import { readEnvironment, readSettings, type Settings } from '../config/settings.ts'
import { type Foundation, openExisting } from '../foundation.ts'

export interface OutputOptions {
  json?: boolean
}

export function loadSettings(): Settings {
  return readSettings(readEnvironment(process.cwd(), process.env))
}

/** Runs `work` on the database, started for it where no service has it running, and lets go of it. */
export async function withFoundation<Result>(
  work: (foundation: Foundation) => Promise<Result>,
): Promise<Result> {
  const settings = loadSettings()
  const log = createLog('warn', settings.logFormat)
  const foundation = await openExisting(settings, log, (line) => console.error(line))
  try {
    return await work(foundation)
  } finally {
    await foundation.close()
  }
}

/** The answer of a command: one JSON document, or what a person would rather read. */
export function print({ json }: OutputOptions, value: unknown, text: string): void {
  console.log(json ? JSON.stringify(value, null, 2) : text)
}

/** Columns of text, each as wide as its widest cell. */
export function table(head: string[], rows: string[][]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)))
  const line = (cells: string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join('  ')
      .trimEnd()
  return [line(head), ...rows.map(line)].join('\n')
}
