// Reads single settings from the environment, and refuses unknown settings.
import { nearest } from './nearest.ts'

/** An unusable setting. The message is the one line to print. */
export class SettingError extends Error {}

export type Environment = Record<string, string | undefined>

/** Reads single settings, and remembers their names, so that it can refuse all others. */
export class Reader {
  readonly #environment: Environment
  readonly #asked = new Set<string>()

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** Returns the setting, parsed, or `fallback` if it is not set. `example` says what to write instead of a wrong value. */
  read<Value>(name: string, fallback: Value, parse: (text: string) => Value | null, example: string): Value {
    this.#asked.add(name)
    const text = this.#environment[name]?.trim()
    if (text === undefined || text === '') return fallback
    const value = isPlain(text) ? parse(text) : null
    if (value !== null) return value
    // Security: a possible password or key is not repeated, because errors end up in journals and tickets.
    throw new SettingError(
      `${name}${mayBeSecret(name, text) ? '' : `=${quoted(text)}`} is not valid: write ${example}`,
    )
  }

  /** Returns a variable that other programs define too, or null if it is not set. It is no setting of ours. */
  shared(name: string): string | null {
    return this.#environment[name]?.trim() || null
  }

  /** The settings that were read, in that order. */
  get names(): string[] {
    return [...this.#asked]
  }

  /** Returns whether the setting has a value. */
  has(name: string): boolean {
    return (this.#environment[name]?.trim() ?? '') !== ''
  }

  refuseOthers(): void {
    for (const name of Object.keys(this.#environment)) {
      if (!name.startsWith(prefix) || foreign.test(name) || this.#asked.has(name)) continue
      const known = this.names.map((one) => one.slice(prefix.length))
      const meant = nearest(name.slice(prefix.length), known)
      throw new SettingError(
        `${name} is not a setting${meant ? `: did you mean ${prefix}${meant}?` : ':'} docs/settings.md lists all settings`,
      )
    }
  }
}

const maxLength = 64 * 1024
const maxQuoted = 80

/** Names, paths and addresses are one line of printable text. JSON, which begins with a brace, may have several lines. */
function isPlain(text: string): boolean {
  const line = text.startsWith('{') ? text.replaceAll(/[\t\r\n]/g, ' ') : text
  return line.length <= maxLength && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(line)
}

/** Returns the text in quotation marks, cut and without control characters, so that an error stays one short line. */
export function quoted(text: string): string {
  const start = text.length > maxQuoted ? `${text.slice(0, maxQuoted)}…` : text
  return `"${start.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '�')}"`
}

/** Returns whether the setting has secrets, or the value looks like one. */
function mayBeSecret(name: string, text: string): boolean {
  return (
    /_(DATABASE_URL|RELAY_URL|RSPAMD|KEY|KEY_FILE|DNSBL|SECRET)$/.test(name) ||
    /@|:\/|[^\s:,./]{40}/.test(text)
  )
}

const prefix = 'POSTHORN_'

/** Names that are not settings of the service: tests use them for the published suites and their database. */
// POSTHORN_KEY is the API key of callers, as in the examples.
const foreign = /^POSTHORN_(?:TEST|KEY$)/
