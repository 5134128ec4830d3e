// The command line for customers: finds the command, reads its options, prints its failure as one line.
import { parseArgs } from 'node:util'
import { PosthornError } from '../posthorn.ts'
import { accountCommands } from './account-commands.ts'
import { type Arguments, type Command, type Option, UsageError } from './command.ts'
import { complete, findCommand, shells } from './completion.ts'
import { exportCommand } from './export-command.ts'
import { listCommands } from './list-commands.ts'
import { listenCommand } from './listen-command.ts'
import { mailCommands } from './mail-commands.ts'
import { Session } from './session.ts'
import { inertLine } from './terminal.ts'

const completionCommand: Command = {
  words: 'completion',
  operands: 'SHELL',
  summary: 'Print the completion for bash, zsh or fish',
  async run(session, { positionals: [shell] }) {
    const script = shells[shell!]
    if (script === undefined) throw new UsageError('The shell must be bash, zsh or fish.')
    await session.write(script)
  },
}

const commands = [
  ...accountCommands,
  ...mailCommands,
  exportCommand,
  ...listCommands,
  listenCommand,
  completionCommand,
]
const everywhere: Record<string, Option> = {
  json: { type: 'boolean', help: 'print JSON, one document a line' },
  help: { type: 'boolean', help: 'print this' },
}

async function run(words: string[]): Promise<void> {
  if (words[0] === 'complete') return console.log(complete(commands, words.slice(2)).join('\n'))
  const command = findCommand(commands, words)
  if (!command) return printHelp(words)
  const options = { ...command.options, ...everywhere }
  const args = words.slice(command.words.split(' ').length)
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
  if (values['help']) return console.log(describe(command, options))
  const operands = command.operands.split(' ').filter(Boolean)
  const required = operands.filter((operand) => !operand.startsWith('['))
  if (positionals.length < required.length || positionals.length > operands.length)
    throw new UsageError(`usage: ph ${command.words} ${command.operands}`.trimEnd())
  const ending = new AbortController()
  process.once('SIGINT', () => ending.abort())
  const session = new Session({ isJson: values['json'] === true, signal: ending.signal })
  await command.run(session, readArguments(positionals, values)).catch((error) => {
    if (!ending.signal.aborted) throw error
  })
}

function readArguments(positionals: string[], values: Record<string, unknown>): Arguments {
  return {
    positionals,
    text: (name) => (values[name] as string | undefined) ?? null,
    texts: (name) => (values[name] as string[] | undefined) ?? [],
    isSet: (name) => values[name] === true,
  }
}

function describe({ words, operands, summary }: Command, options: Record<string, Option>): string {
  const lines = Object.entries(options).map(([name, { type, help }]) => {
    const form = type === 'string' ? `--${name} ${name.toUpperCase()}` : `--${name}`
    return `  ${form.padEnd(24)}${help}`
  })
  return [`usage: ph ${words} ${operands}`.trimEnd(), '', `${summary}.`, '', ...lines].join('\n')
}

/** Prints the commands. Throws UsageError if these words name none. */
function printHelp(words: string[]): void {
  const lines = commands.map(
    ({ words, operands, summary }) => `  ${`${words} ${operands}`.padEnd(34)}${summary}`,
  )
  const text = ['usage: ph COMMAND [--json] [--help]', '', ...lines].join('\n')
  if (words.length > 0 && words[0] !== '--help')
    throw new UsageError(`There is no command ${inertLine(words[0]!)}.\n\n${text}`)
  console.log(text)
}

/** A mistake of the caller exits with 2, any other failure with 1. */
function fail(error: unknown): void {
  const { message, code } = error as { message: string; code?: string }
  const isMistake = error instanceof UsageError || code?.startsWith('ERR_PARSE_ARGS') === true
  const id = error instanceof PosthornError && error.requestId !== null ? ` (request ${error.requestId})` : ''
  process.stderr.write(`ph: ${message}${id}\n`)
  process.exitCode = isMistake ? 2 : 1
}

// The reader of a pipe may end first, as `head` does.
process.stdout.on('error', () => process.exit(0))
await run(process.argv.slice(2)).catch(fail)
