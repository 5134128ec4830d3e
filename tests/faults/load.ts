// Load for a service that is being killed: HTTP senders that retry each key until it succeeds, SMTP senders that try once.
import { setTimeout as pause } from 'node:timers/promises'
import { type Acceptance, Api, type Inbox } from '../support/api.ts'
import type { Posthorn } from '../support/service.ts'
import type { Sink } from '../support/sink.ts'
import { type Sent, sendMail } from '../support/smtp-sender.ts'
import type { Cluster } from './cluster.ts'
import type { Arrival, Promised, Send } from './ledger.ts'

export interface Load {
  sends: Send[]
  arrivals: Arrival[]
  /** Statuses other than 202 and 503, and replies that no kill explains. Each is a violation. */
  surprises: string[]
  /** When the 202 of each key and the 250 of each Message-ID was read. */
  answeredMs: Map<string, number>
  /** The longest time of an acknowledged send, from its first try. */
  slowestMs: number
  /** Tries without a 202 or 250 that are no surprise: no connection, a connection that broke, 503, 4xx. */
  refusals: string[]
  /** Called for every final dot and every request as soon as it was sent. */
  watch: ((left: 'dot' | 'request') => unknown) | null
  /** Resolves once every sender has finished its work in progress. */
  stop(): Promise<void>
}

/** Settings of a service that delivers all mail to the sink, and soon tries again. */
export function relayTo({ url }: Pick<Sink, 'url'>): Record<string, string> {
  return {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: url,
    POSTHORN_RETRY_SCHEDULE: '1s,2s',
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  }
}

interface Options {
  /** A prefix of this load's keys and Message-IDs, so that several loads differ. */
  name?: string
  api: Api
  smtp: () => { host: string; port: number }
  inboxes: Inbox[]
  random: () => number
  senders?: number
  /** Mean pause of each sender between two sends. */
  pauseMs?: number
  /** Whether a mail is offered again after a 4xx, as mail servers do, and how long its sender waits for a reply. */
  mail?: { isRepeated: boolean; timeoutMs: number }
}

/** Starts senders at one node of several. */
export function startLoadAt(
  { inboxes, secret }: Pick<Cluster, 'inboxes' | 'secret'>,
  node: Posthorn,
  options: Omit<Options, 'api' | 'smtp' | 'inboxes'>,
): Load {
  return startLoad({ ...options, api: new Api(() => node.http, secret), smtp: () => node.smtp, inboxes })
}

/** The sink takes up to 300 ms for a message, so that some mail is in transfer at each moment. */
export function takeSlowly(sink: Sink, random: () => number): void {
  sink.rule = async ({ stage }) => {
    if (stage === 'message') await pause(300 * random())
    return null
  }
}

/** Starts the senders. They run through every kill of the service until `stop`. */
export function startLoad(options: Options): Load {
  const { senders = 4 } = options
  const load: Load = {
    sends: [],
    arrivals: [],
    surprises: [],
    refusals: [],
    answeredMs: new Map(),
    slowestMs: 0,
    watch: null,
    stop: () => stop(),
  }
  const state = { running: true, number: 0 }
  const workers = Array.from({ length: senders }, () => [
    repeat(state, options, (number) => sendOne(load, state, options, number)),
    repeat(state, options, (number) => mailOne(load, state, options, number)),
  ]).flat()
  const stop = async () => {
    state.running = false
    await Promise.all(workers)
  }
  return load
}

interface State {
  running: boolean
  number: number
}

async function repeat(
  state: State,
  { random, pauseMs = 25 }: Options,
  one: (number: number) => Promise<void>,
): Promise<void> {
  while (state.running) {
    await one(state.number++)
    await pause(2 * pauseMs * random())
  }
}

function noteAnswer(load: Load, key: string, begunMs: number): void {
  const nowMs = Date.now()
  load.answeredMs.set(key, nowMs)
  load.slowestMs = Math.max(load.slowestMs, nowMs - begunMs)
}

async function sendOne(load: Load, state: State, options: Options, number: number) {
  const { name = 'campaign', api, inboxes, random } = options
  const from = inboxes[number % inboxes.length]!
  const recipients = recipientsOf(number, random(), inboxes)
  const send: Send = {
    key: `${name}-${number}`,
    path: `/v1/inboxes/${from.id}/messages`,
    body: { to: recipients.map((email) => ({ email })), subject: `Send ${number}`, text: words(random) },
    recipients,
    promised: null,
  }
  load.sends.push(send)
  const begunMs = Date.now()
  while (state.running && !send.promised) {
    const answering = post(api, send, (words) => load.refusals.push(`${send.key}: ${words}`))
    load.watch?.('request')
    const answer = await answering
    if (typeof answer === 'string') load.surprises.push(`${send.key}: ${answer}`)
    if (typeof answer === 'string') return
    send.promised = answer?.promised ?? null
    if (send.promised) noteAnswer(load, send.key, begunMs)
    else await pause(50)
  }
}

/** One try: the ids of its 202, null for no answer or a 503, a description for a surprise. */
export async function post(
  api: Api,
  { path, body, key }: Send,
  onRefusal: (words: string) => void = () => {},
): Promise<{ promised: Promised; replayed: boolean } | string | null> {
  try {
    const answer = await api.call<Acceptance>(path, { method: 'POST', body, idempotencyKey: key })
    // An earlier try, which was answered with 503, still waits for the outcome of its commit.
    const isWaiting = answer.status === 409 && JSON.stringify(answer.body).includes('idempotency_in_progress')
    if (answer.status === 503 || isWaiting) {
      onRefusal(`${answer.status} ${JSON.stringify(answer.body)}`)
      return null
    }
    if (answer.status !== 202) return `${answer.status} ${JSON.stringify(answer.body)}`
    const { message, submission, replayed } = answer.body
    const { id: messageId, internetMessageId } = message
    return { promised: { submissionId: submission.id, messageId, internetMessageId }, replayed }
  } catch (error) {
    // The service died before its answer was complete. The result is unknown, so the same key is sent again.
    onRefusal(`no answer: ${(error as Error).cause ?? error}`)
    return null
  }
}

function recipientsOf(number: number, dice: number, inboxes: Inbox[]): string[] {
  const far = (part: number) => `r${number}-${part}@far${number % 20}.test`
  if (dice < 0.1) return [inboxes[(number + 1) % inboxes.length]!.address]
  return dice < 0.3 ? [far(1), far(2), far(3)] : [far(1)]
}

async function mailOne(load: Load, state: State, options: Options, number: number): Promise<void> {
  const { name = 'arrival', smtp, inboxes, random } = options
  const { isRepeated = false, timeoutMs } = options.mail ?? {}
  const address = inboxes[number % inboxes.length]!.address
  const messageId = `<${name}-${number}@sender.test>`
  const head = `From: s@sender.test\r\nTo: ${address}\r\nSubject: Mail ${number}\r\nMessage-ID: ${messageId}\r\n`
  const raw = Buffer.from(`${head}\r\n${words(random)}\r\n`)
  const begunMs = Date.now()
  const offer = () =>
    sendMail(
      smtp(),
      { from: 's@sender.test', to: address, raw },
      { timeoutMs, onDot: () => load.watch?.('dot') },
    )
  const note = ({ outcome, stage, reply }: Sent) =>
    load.refusals.push(`${messageId}: ${outcome} at ${stage} ${reply}`)
  let sent = await offer()
  while (isRepeated && state.running && sent.outcome === 'refused' && sent.reply.startsWith('4')) {
    note(sent)
    await pause(50)
    sent = await offer()
  }
  if (sent.outcome === 'refused' && sent.reply.startsWith('5'))
    load.surprises.push(`${messageId}: ${sent.reply}`)
  if (sent.outcome === 'accepted') noteAnswer(load, messageId, begunMs)
  else note(sent)
  const isUnknown = sent.outcome === 'lost' && sent.stage === 'message'
  const outcome = sent.outcome === 'accepted' ? 'acknowledged' : isUnknown ? 'unknown' : 'not_taken'
  load.arrivals.push({ messageId, address, outcome })
}

function words(random: () => number): string {
  return 'All that was promised is kept. '.repeat(1 + Math.floor(40 * random() ** 3))
}

/** Mulberry32: the same seed gives the same numbers. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
