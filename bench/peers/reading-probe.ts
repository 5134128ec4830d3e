// How soon after its 250 a mail can be read through the API: a few mails a second, each waited for.
import { sendMail } from '../../tests/support/smtp-sender.ts'
import { until } from '../../tests/support/until.ts'
import { type Latency, latencyOf, repeat } from '../load/schedule.ts'
import type { PreparedMail } from '../load/verified-mail.ts'
import { call, createInbox, type Posthorn } from './posthorn.ts'

export interface Readability {
  /** From a mail's 250 until the request that waits for it is answered with it. */
  latencyMs: Latency
  read: number
}

/** When a mail had its 250, and when it was read: the answer can be here before the 250 is. */
interface Trace {
  acceptedAtMs?: number
  readAtMs?: number
}

const everyMs = 100
/** The inbox that only these mails go to. */
const localPart = 'probe'
export const probeRecipient = `${localPart}@bench.test`

export class ReadingProbe {
  readonly #posthorn: Posthorn
  readonly #inboxId: string
  readonly #mails: readonly PreparedMail[]
  /** By Message-ID. */
  readonly #traces = new Map<string, Trace>()
  #waitedMs: number[] = []
  #after = '0'

  private constructor(posthorn: Posthorn, inboxId: string, mails: readonly PreparedMail[]) {
    this.#posthorn = posthorn
    this.#inboxId = inboxId
    this.#mails = mails
  }

  /** `mails` are to `probeRecipient`, each with a Message-ID of its own. */
  static async start(posthorn: Posthorn, mails: readonly PreparedMail[]): Promise<ReadingProbe> {
    return new ReadingProbe(posthorn, await createInbox(posthorn, localPart), mails)
  }

  /** Sends ten a second until `over`; resolves once each that was accepted has been read. */
  async run(over: AbortSignal): Promise<Readability> {
    this.#waitedMs = []
    const end = new AbortController()
    const reading = this.#readOn(end.signal)
    const sending: Promise<void>[] = []
    await repeat(async () => void sending.push(this.#send(sending.length)), everyMs, over)
    await Promise.all(sending)
    // One without a 250 may be there all the same: it does not count.
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
