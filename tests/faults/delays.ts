// Measures the time from a mail's 202 or 250 until its recipient has it, at the sink or in an inbox.
import { setTimeout as pause } from 'node:timers/promises'
import type { Api, Inbox, Message } from '../support/api.ts'
import { inboundKey } from './ledger.ts'
import type { Load } from './load.ts'

/** One recipient of one mail of a load. */
export interface Delay {
  /** The key or Message-ID, and the recipient. */
  what: string
  /** The queue of a send; null for mail given to the MX. */
  route: string | null
  answeredMs: number
  /** Null while the mail has not arrived. */
  arrivedMs: number | null
}

/** Reads inboxes by long polling, as agents do, and records when each mail was seen. */
export class Observer {
  /** By `inboundKey`: every time a mail was seen, in milliseconds since the epoch. */
  readonly seenMs = new Map<string, number[]>()
  /** Requests that got no page. Each was repeated. */
  readonly failures: string[] = []
  readonly #reading: Promise<void>[]
  #isRunning = true

  constructor(api: Api, inboxes: readonly Inbox[]) {
    this.#reading = inboxes.map((inbox) => this.#read(api, inbox))
  }

  /** Resolves once no request waits. */
  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#reading)
  }

  async #read(api: Api, { id, address }: Inbox): Promise<void> {
    for (let after = '0'; this.#isRunning; ) {
      const path = `/v1/inboxes/${id}/messages?after=${after}&direction=inbound&wait=2`
      const page = await api.call<{ messages: Message[] }>(path).catch((error: Error) => error)
      if (page instanceof Error || page.status !== 200) {
        this.failures.push(`${path}: ${page instanceof Error ? (page.cause ?? page) : page.status}`)
        await pause(100)
        continue
      }
      const nowMs = Date.now()
      for (const message of page.body.messages) {
        const key = inboundKey(message.internetMessageId, address)
        this.seenMs.set(key, [...(this.seenMs.get(key) ?? []), nowMs])
        after = message.id
      }
    }
  }
}

/** The delay for every recipient of acknowledged mail (202 and 250). */
export function listDelays(
  { sends, arrivals, answeredMs }: Load,
  copies: readonly { messageId: string; recipient: string; atMs: number }[],
  { seenMs }: Observer,
): Delay[] {
  const arrivedMs = new Map<string, number>()
  for (const [key, times] of seenMs) arrivedMs.set(key, Math.min(...times))
  for (const { messageId, recipient, atMs } of copies) {
    const key = inboundKey(messageId, recipient)
    arrivedMs.set(key, Math.min(atMs, arrivedMs.get(key) ?? atMs))
  }
  const delay = (key: string, messageId: string, recipient: string, route: string | null): Delay[] => {
    const atMs = answeredMs.get(key)
    const arrived = arrivedMs.get(inboundKey(messageId, recipient)) ?? null
    const what = `${key} to ${recipient}`
    return atMs === undefined ? [] : [{ what, route, answeredMs: atMs, arrivedMs: arrived }]
  }
  const routeOf = (recipient: string) => {
    const domain = recipient.split('@')[1]!
    return domain.startsWith('far') ? domain : '@local'
  }
  return [
    ...sends.flatMap(({ key, promised, recipients }) =>
      promised ? recipients.flatMap((one) => delay(key, promised.internetMessageId, one, routeOf(one))) : [],
    ),
    ...arrivals.flatMap(({ messageId, address }) => delay(messageId, messageId, address, null)),
  ]
}

/** The longest delay in milliseconds; 0 without delays. */
export function longestMs(delays: readonly Delay[]): number {
  return delays.reduce((longest, { answeredMs, arrivedMs }) => {
    return Math.max(longest, (arrivedMs ?? Date.now()) - answeredMs)
  }, 0)
}
