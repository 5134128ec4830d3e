// What commands share: settings, the foundation they stand on for a moment, and how they print.
import { type Command, InvalidArgumentError } from 'commander'
import { createLog } from '../base/log.ts'
import { nameRule, readName } from '../base/name.ts'
import { readEnvironment, readSettings, type Settings } from '../config/settings.ts'
import { type Foundation, openExisting } from '../foundation.ts'
import { inertJson, inertLine, inertText } from './inert-text.ts'

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
export function print(options: OutputOptions, value: unknown, text: string): void {
  printPainted(options, value, inertText(text))
}

/** The same for text with colours of ours in it; what is a stranger's there has been through `inertText`. */
export function printPainted({ json }: OutputOptions, value: unknown, text: string): void {
  console.log(json ? inertJson(value) : text)
}

/** Columns of text, each as wide as its widest cell. */
export function table(head: string[], given: string[][]): string {
  const rows = given.map((cells) => cells.map(inertLine))
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)))
  const line = (cells: string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join('  ')
      .trimEnd()
  return [line(head), ...rows.map(line)].join('\n')
}

/** How many a list has at most, and where it goes on. */
export interface PageOptions extends OutputOptions {
  limit: number
  cursor?: string
}

const maxPage = 1_000

export function addPageOptions(command: Command): Command {
  return command
    .option('--limit <n>', 'how many', parseLimit, 50)
    .option('--cursor <id>', 'go on behind this one')
    .option('--json', 'print JSON')
}

/** The page out of one row more than it may have, and where the list goes on. */
export function pageOf<Row extends { id: string }>(
  rows: Row[],
  limit: number,
): { page: Row[]; nextCursor: string | null } {
  const page = rows.slice(0, limit)
  return { page, nextCursor: rows.length > limit ? page.at(-1)!.id : null }
}

function parseLimit(text: string): number {
  const count = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > maxPage)
    throw new InvalidArgumentError(`write a whole number from 1 to ${maxPage}`)
  return count
}

/** What organizations and keys are called by. */
export function parseName(text: string): string {
  const name = readName(text)
  if (name === null) throw new InvalidArgumentError(`a name has ${nameRule}`)
  return name
}
