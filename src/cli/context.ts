// Shared by commands: settings, a foundation that is open for one command, and printing.
import { styleText } from 'node:util'
import { type Command, InvalidArgumentError } from 'commander'
import { createLog } from '../base/log.ts'
import { nameRule, readName } from '../base/name.ts'
import { readEnvironment, readSettings, type Settings } from '../config/settings.ts'
import { type Foundation, openExisting } from '../foundation.ts'
import { inertJson, inertLine, inertText } from './inert-text.ts'
import type { Terminal } from './terminal.ts'

export interface OutputOptions {
  json?: boolean
  /** The terminal at which the command was typed. */
  terminal: Terminal
}

export function loadSettings({ terminal: { folder, environment } }: OutputOptions): Settings {
  return readSettings(readEnvironment(folder, environment), folder)
}

/** Runs `work` on the database, then closes it. Starts the embedded database if no service runs it. */
export async function withFoundation<Result>(
  options: OutputOptions,
  work: (foundation: Foundation) => Promise<Result>,
): Promise<Result> {
  const settings = loadSettings(options)
  const log = createLog('warn', settings.logFormat, options.terminal.stderr)
  const foundation = await openExisting(settings, log, (line) => remark(options, line))
  try {
    return await work(foundation)
  } finally {
    await foundation.close()
  }
}

/** Prints a command's answer: one JSON document, or text for people. */
export function print(options: OutputOptions, value: unknown, text: string): void {
  printPainted(options, value, inertText(text))
}

/** Like `print`, for text with our colours. Pass strangers' text through `inertText` first. */
export function printPainted({ json, terminal }: OutputOptions, value: unknown, text: string): void {
  terminal.console.log(json ? inertJson(value) : text)
}

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan'

export type Paint = (style: Style, text: string) => string

/** Colours, if the terminal shows them. Respects NO_COLOR. */
export function paintFor({ stdout }: Terminal): Paint {
  return (style, text) => styleText(style, text, { stream: stdout })
}

/** Prints a line on standard error that is not part of the answer: a warning or progress. */
export function remark({ terminal }: OutputOptions, line: string): void {
  terminal.console.error(line)
}

/** Formats columns of text, each as wide as its widest cell. */
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

/** The maximum number of rows of a list, and the cursor at which it continues. */
export interface PageOptions extends OutputOptions {
  limit: number
  cursor?: string
}

const maxPage = 1_000

export function addPageOptions(command: Command): Command {
  return command
    .option('--limit <n>', 'maximum number of rows', parseLimit, 50)
    .option('--cursor <id>', 'continue after this id, which the previous page printed')
    .option('--json', 'print JSON')
}

function parseLimit(text: string): number {
  const count = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > maxPage)
    throw new InvalidArgumentError(`Write a whole number from 1 to ${maxPage}.`)
  return count
}

/** Reads the name of an organization or a key. */
export function parseName(text: string): string {
  const name = readName(text)
  if (name === null) throw new InvalidArgumentError(`A name has ${nameRule}.`)
  return name
}
