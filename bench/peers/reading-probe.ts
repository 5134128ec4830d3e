// How soon after its 250 a mail can be read through the API: a few mails a second, each awaited by its own request.
import { sendMail } from '../../tests/support/smtp-sender.ts'
import { until } from '../../tests/support/until.ts'
import { type Latency, latencyOf, repeat } from '../load/schedule.ts'
import type { PreparedMail } from '../load/verified-mail.ts'
import { call, createInbox, type Posthorn } from './posthorn.ts'

export interface Readability {
  /** The time from a mail's 250 until the waiting request is answered with this mail. */
  latencyMs: Latency
  read: number
}

/** When a mail got its 250 and when it was read. The answer can arrive before the 250. */
interface Trace {
  acceptedAtMs?: number
  readAtMs?: number
}

const everyMs = 100
/** Only these mails go to this inbox. */
const localPart = 'probe'
export const probeRecipient = `${localPart}@bench.test`

export class ReadingProbe {
  readonly #posthorn: Posthorn
  readonly #inboxId: string
  readonly #mails: readonly PreparedMail[]
  /** Traces by Message-ID. */
  readonly #traces = new Map<string, Trace>()
  #waitedMs: number[] = []
  #after = '0'

  private constructor(posthorn: Posthorn, inboxId: string, mails: readonly PreparedMail[]) {
    this.#posthorn = posthorn
    this.#inboxId = inboxId
    this.#mails = mails
  }

  /** `mails` go to `probeRecipient`, each with a different Message-ID. */
  static async start(posthorn: Posthorn, mails: readonly PreparedMail[]): Promise<ReadingProbe> {
    return new ReadingProbe(posthorn, await createInbox(posthorn, localPart), mails)
  }

  /** Sends ten mails a second until `over`. Resolves once every accepted mail has been read. */
  async run(over: AbortSignal): Promise<Readability> {
    this.#waitedMs = []
    const end = new AbortController()
    const reading = this.#readOn(end.signal)
    const sending: Promise<void>[] = []
    await repeat(async () => void sending.push(this.#send(sending.length)), everyMs, over)
    await Promise.all(sending)
    // A mail without a 250 may still be there. It does not count.
    const allRead = () => [...this.#traces.values()].every(({ acceptedAtMs }) => acceptedAtMs === undefined)
    await until('every mail that was accepted is read', allRead, { timeoutMs: 300_000 })
    end.abort()
    await reading
    this.#traces.clear()
    return { latencyMs: latencyOf(this.#waitedMs), read: this.#waitedMs.length }
  }

  async #send(number: number): Promise<void> {
    const { from, bytes } = this.#mails[number % this.#mails.length]!
    const to = { host: '127.0.0.1', port: this.#posthorn.smtpPort }
    const { outcome } = await sendMail(to, { from, to: probeRecipient, raw: bytes })
    const id = /^Message-ID: (<.*>)\r$/m.exec(bytes.toString('latin1'))![1]!
    if (outcome === 'accepted') this.#note(id, { acceptedAtMs: performance.now() })
  }

  async #readOn(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const path = `/v1/inboxes/${this.#inboxId}/messages?direction=inbound&wait=1&after=${this.#after}`
      const page = await call<{ messages: { id: string; internetMessageId: string }[] }>(this.#posthorn, {
        method: 'GET',
        path,
      })
      const readAtMs = performance.now()
      for (const { internetMessageId } of page.messages) this.#note(internetMessageId, { readAtMs })
      this.#after = page.messages.at(-1)?.id ?? this.#after
    }
  }

  #note(id: string, more: Trace): void {
    const { acceptedAtMs, readAtMs } = { ...this.#traces.get(id), ...more }
    if (acceptedAtMs === undefined || readAtMs === undefined)
      return void this.#traces.set(id, { ...this.#traces.get(id), ...more })
    this.#traces.delete(id)
    this.#waitedMs.push(Math.max(0, readAtMs - acceptedAtMs))
  }
}
