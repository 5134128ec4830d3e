// A command of ph: its words, its arguments and options, and its function.
import type { Session } from './session.ts'

export interface Option {
  type: 'string' | 'boolean'
  multiple?: boolean
  help: string
}

export interface Arguments {
  positionals: string[]
  /** Null if it was not given. */
  text(name: string): string | null
  texts(name: string): string[]
  isSet(name: string): boolean
}

export interface Command {
  /** As they are typed: `inbox create`. */
  words: string
  /** The arguments after the words, optional ones in brackets: `MESSAGE [FILE]`. */
  operands: string
  summary: string
  options?: Record<string, Option>
  run(session: Session, given: Arguments): Promise<void>
}

/** A mistake of the caller. Its message is the whole output. */
export class UsageError extends Error {}

export const inboxOption: Record<string, Option> = {
  inbox: { type: 'string', help: 'the inbox. Default: the one of `ph inbox use`' },
}
