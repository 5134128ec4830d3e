// The parts that every command needs: the client, the inbox, and the output as text or JSON.
import { once } from 'node:events'
import { Posthorn } from '../posthorn.ts'
import { UsageError } from './command.ts'
import { readProfile } from './profile.ts'
import { inertJson } from './terminal.ts'

export class Session {
  /** Whether `--json` was given. */
  readonly isJson: boolean
  /** Aborted by SIGINT. */
  readonly signal: AbortSignal

  constructor(options: { isJson: boolean; signal: AbortSignal }) {
    this.isJson = options.isJson
    this.signal = options.signal
  }

  /** Throws UsageError if nobody is logged in. */
  async client(deadlineMs = 60_000): Promise<Posthorn> {
    const { baseUrl, apiKey } = await readProfile()
    return new Posthorn({ baseUrl, apiKey, deadlineMs })
  }

  /** Returns the given inbox, or that of the profile. An address is looked up. */
  async inboxId(given: string | null): Promise<string> {
    const inbox = given ?? (await readProfile()).inbox
    if (inbox === undefined)
      throw new UsageError('Name an inbox with --inbox, or choose one with `ph inbox use INBOX`.')
    if (!inbox.includes('@')) return inbox
    const client = await this.client()
    for await (const { id, address } of client.inboxes.list({ q: inbox })) if (address === inbox) return id
    throw new UsageError(`There is no inbox ${inbox}.`)
  }

  /** Prints one line of JSON with `--json`, the text otherwise. */
  async print(value: unknown, text: string): Promise<void> {
    await this.write(this.isJson ? inertJson(value) : text)
  }

  async write(text: string | Uint8Array): Promise<void> {
    const line = typeof text === 'string' ? `${text}\n` : text
    // A slow reader must not make this process hold everything.
    if (!process.stdout.write(line)) await once(process.stdout, 'drain')
  }

  /** For people, next to the output. */
  note(text: string): void {
    if (!this.isJson) process.stderr.write(`${text}\n`)
  }
}

/** Reads all of standard input as text. */
export async function readInput(): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of process.stdin) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString()
}
