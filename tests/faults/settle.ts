// The last drain of a fault campaign: replays of every key, the states of every recipient, and all stored mail.
import { setTimeout as pause } from 'node:timers/promises'
import type { Api, Inbox, Submission } from '../support/api.ts'
import type { Sink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { type Arrival, type Found, inboundKey, type Send } from './ledger.ts'
import { post } from './load.ts'

/** A load that has stopped. */
interface Ended {
  api: Api
  inboxes: Inbox[]
  sink: Pick<Sink, 'copies'>
  sends: Send[]
  arrivals: Arrival[]
}

/**
 * Replays every key, waits until nothing is pending and every acknowledged mail is filed, and returns what is there then.
 */
export async function settle({ api, inboxes, sink, sends, arrivals }: Ended): Promise<Found> {
  const replays: Found['replays'] = new Map()
  await inParallel(sends, async (send) => void replays.set(send.key, await replay(api, send)))
  await until('every submission to end', async () => (await pending(api)) === 0, {
    timeoutMs: 180_000,
    everyMs: 250,
  })
  const states: Found['states'] = new Map()
  await inParallel([...replays.values()], async (answer) => {
    if (!answer) return
    const { submissionId } = answer.promised
    const submission = await api.want<Submission>(`/v1/submissions/${submissionId}`)
    states.set(
      submissionId,
      submission.recipients.map(({ status }) => status),
    )
  })
  const exported = await everythingFiled(api, inboxes, arrivals)
  return { replays, states, ...exported, copies: sink.copies }
}

async function replay(
  api: Api,
  send: Send,
): Promise<{ promised: Send['promised'] & {}; replayed: boolean } | null> {
  const answer = await until(`an answer to ${send.key}`, () => post(api, send))
  return typeof answer === 'string' ? null : answer
}

async function pending(api: Api): Promise<number> {
  const page = await api.want<{ submissions: Submission[] }>('/v1/submissions?status=pending&limit=1')
  return page.submissions.length
}

/** Exports until every acknowledged mail is there, or a minute has passed. The ledger reports missing mail. */
async function everythingFiled(
  api: Api,
  inboxes: Inbox[],
  arrivals: Arrival[],
): Promise<Pick<Found, 'stored' | 'outbound'>> {
  const deadlineMs = Date.now() + 60_000
  const acknowledged = arrivals.filter(({ outcome }) => outcome === 'acknowledged')
  for (;;) {
    const exported = await exportAll(api, inboxes)
    const isComplete = acknowledged.every(({ messageId, address }) =>
      exported.stored.has(inboundKey(messageId, address)),
    )
    if (isComplete || Date.now() > deadlineMs) return exported
    await pause(500)
  }
}

async function exportAll(api: Api, inboxes: Inbox[]): Promise<Pick<Found, 'stored' | 'outbound'>> {
  const stored: Found['stored'] = new Map()
  const outbound: Found['outbound'] = new Map()
  for (const inbox of inboxes) {
    for (const { id, direction, internetMessageId } of await api.exported(inbox.id)) {
      if (direction === 'outbound') count(outbound, id)
      else count(stored, inboundKey(internetMessageId, inbox.address))
    }
  }
  return { stored, outbound }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

async function inParallel<Item>(items: Item[], one: (item: Item) => Promise<void>): Promise<void> {
  const waiting = items.values()
  const worker = async () => {
    for (const item of waiting) await one(item)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}
