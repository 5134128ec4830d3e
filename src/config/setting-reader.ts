// Reads single settings out of the environment, and knows those that nobody asked for.
import { nearest } from './nearest.ts'

/** A setting that cannot be used; the message is the one line to print. */
export class SettingError extends Error {}

export type Environment = Record<string, string | undefined>

/** Reads single settings, and knows in the end which ones nobody asked for. */
export class Reader {
  readonly #environment: Environment
  readonly #asked = new Set<string>()

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** The setting as `parse` understands it, or `fallback` where it is not set; `example` says what to write instead. */
  read<Value>(name: string, fallback: Value, parse: (text: string) => Value | null, example: string): Value {
    this.#asked.add(name)
    const text = this.#environment[name]?.trim()
    if (text === undefined || text === '') return fallback
    const value = isPlain(text) ? parse(text) : null
    if (value !== null) return value
    // Security: what may hold a password or a key is not repeated, for errors end up in journals and tickets.
    throw new SettingError(
      `${name}${mayBeSecret(name, text) ? '' : `=${quoted(text)}`} cannot be used: write ${example}`,
    )
  }

  /** The settings that were asked for, in that order. */
  get names(): string[] {
    return [...this.#asked]
  }

  /** Whether it is set to anything. */
  has(name: string): boolean {
    return (this.#environment[name]?.trim() ?? '') !== ''
  }

  refuseOthers(): void {
    for (const name of Object.keys(this.#environment)) {
      if (!name.startsWith(prefix) || foreign.test(name) || this.#asked.has(name)) continue
      const known = this.names.map((one) => one.slice(prefix.length))
      const meant = nearest(name.slice(prefix.length), known)
      throw new SettingError(
        `${name} is not a setting${meant ? `: did you mean ${prefix}${meant}?` : ':'} docs/settings.md has those there are`,
      )
    }
  }
}

const maxLength = 64 * 1024
const maxQuoted = 80

/** Names, paths and addresses are one line of printable text; JSON, which begins with a brace, may have several. */
function isPlain(text: string): boolean {
  const line = text.startsWith('{') ? text.replaceAll(/[\t\r\n]/g, ' ') : text
  return line.length <= maxLength && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(line)
}

/** The text between quotation marks, so that the line that repeats it stays one, and short. */
export function quoted(text: string): string {
  const start = text.length > maxQuoted ? `${text.slice(0, maxQuoted)}…` : text
  return `"${start.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '�')}"`
}

/** Settings with secrets in them, and values that look as though they were meant for one. */
function mayBeSecret(name: string, text: string): boolean {
  return (
    /_(DATABASE_URL|RELAY_URL|RSPAMD|KEY|KEY_FILE|DNSBL|SECRET)$/.test(name) ||
    /@|:\/|[^\s:,./]{40}/.test(text)
  )
}

const prefix = 'POSTHORN_'

/** Not settings of the service: where tests find the published suites and their database. */
// POSTHORN_KEY is the API key of callers, as the examples name it.
const foreign = /^POSTHORN_(?:TEST|KEY$)/
