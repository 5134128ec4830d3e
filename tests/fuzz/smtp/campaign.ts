// Plays planned conversations with the real mail server, then checks that each accepted message is there once, as sent.
import type { Inbox } from '../../support/api.ts'
import { until } from '../../support/until.ts'
import { stuff } from '../../support/wire.ts'
import { type Conversation, converse } from './converse.ts'
import type { Measure } from './measure.ts'
import { planOf } from './plan.ts'
import type { Subject } from './subject.ts'
import { type Found, readTranscript } from './transcript.ts'

const talkers = 12
const conversationsEach = 16
export const conversationsPerRound = talkers * conversationsEach
const inboxesEach = 3
const filedTimeoutMs = 120_000

export interface Figures {
  seed: number
  sessions: number
  secured: number
  proxied: number
  /** Commands, chunks and messages that got a reply. */
  answered: number
  codes: Map<number, number>
  /** Messages whose last byte got a 250, and the copies of them found in inboxes. */
  accepted: number
  copies: number
  /** Copies whose 250 the client had not awaited. */
  unacknowledged: number
  longestReplyBytes: number
  longestMs: number
  /** Measures of the idle service, before the first round and after each. */
  measures: Measure[]
  faults: Fault[]
}

export interface Fault {
  /** Number of the conversation, or null if it is unknown. */
  number: number | null
  what: string
}

export function newFigures(seed: number): Figures {
  return {
    seed,
    sessions: 0,
    secured: 0,
    proxied: 0,
    answered: 0,
    codes: new Map(),
    accepted: 0,
    copies: 0,
    unacknowledged: 0,
    longestReplyBytes: 0,
    longestMs: 0,
    measures: [],
    faults: [],
  }
}

/** Plays one round, by its number, and adds its results to the figures. */
export async function playRound(subject: Subject, figures: Figures, round: number): Promise<void> {
  const all = Array.from(
    { length: talkers },
    (_, talker) => round * conversationsPerRound + talker * conversationsEach,
  )
  await Promise.all(
    all.map((first) => {
      const numbers = Array.from({ length: conversationsEach }, (_, index) => first + index)
      return playInTurn(subject, figures, numbers)
    }),
  )
  if (!subject.isRunning)
    figures.faults.push({ number: null, what: `the service has ended: ${subject.faults()}` })
  else {
    figures.measures.push(await subject.measure())
    const logged = subject.faults()
    if (logged !== '') figures.faults.push({ number: null, what: `the service has logged: ${logged}` })
  }
}

/** Plays conversations in sequence with their own inboxes. Verifies and deletes the inboxes at the end. */
export async function playInTurn(
  subject: Subject,
  figures: Figures,
  numbers: number[],
): Promise<Conversation[]> {
  const inboxes = await subject.createInboxes(inboxesEach)
  const addresses = Object.fromEntries(inboxes.map(({ address }, index) => [String(index), address]))
  const names = { ...addresses, host: subject.mailHost }
  const played: { number: number; conversation: Conversation; found: Found }[] = []
  for (const number of numbers) {
    const plan = planOf(figures.seed, number)
    const conversation = await converse(plan, subject.port, names)
    const found = readTranscript(conversation)
    count(figures, { conversation, found, isProxied: plan.proxyBytes > 0 })
    const what = found.fault ?? (conversation.hang && `waited in vain for ${conversation.hang}`)
    if (what) figures.faults.push({ number, what })
    played.push({ number, conversation, found })
    if (!subject.isRunning) return played.map(({ conversation }) => conversation)
  }
  for (const inbox of inboxes) await verifyInbox(subject, figures, inbox, played)
  await subject.deleteInboxes(inboxes)
  return played.map(({ conversation }) => conversation)
}

function count(
  figures: Figures,
  { conversation, found, isProxied }: { conversation: Conversation; found: Found; isProxied: boolean },
): void {
  figures.sessions++
  if (conversation.isSecured) figures.secured++
  if (isProxied) figures.proxied++
  figures.answered += found.answered
  figures.accepted += found.taken.length
  for (const [code, times] of found.codes) figures.codes.set(code, (figures.codes.get(code) ?? 0) + times)
  figures.longestReplyBytes = Math.max(figures.longestReplyBytes, found.longestReplyBytes)
  figures.longestMs = Math.max(figures.longestMs, conversation.tookMs)
}

interface Played {
  number: number
  conversation: Conversation
  found: Found
}

interface Expected {
  number: number
  content: Buffer
}

/** Verifies that the inbox contains each accepted message once, byte for byte, and no message that was never sent. */
async function verifyInbox(
  subject: Subject,
  figures: Figures,
  inbox: Inbox,
  played: Played[],
): Promise<void> {
  const { api } = subject
  const localPart = inbox.address.split('@')[0]!.toLowerCase()
  const expected = played.flatMap(({ number, found }) =>
    found.taken
      .filter(({ recipients }) => recipients.some((line) => line.includes(localPart)))
      .map(({ content }): Expected => ({ number, content })),
  )
  const sources = new Map<string, Buffer>()
  const matchThere = async () => {
    for (const { id } of await api.exported(inbox.id))
      if (!sources.has(id)) sources.set(id, await api.bytes(`/v1/messages/${id}/source`))
    return match([...sources.values()], expected)
  }
  const isComplete = async () => (await matchThere()).missing.length === 0
  const options = { timeoutMs: filedTimeoutMs, everyMs: 100 }
  // The check below reports messages that are still missing.
  await until(`${expected.length} messages in an inbox`, isComplete, options).catch(() => {})
  const { missing, others } = await matchThere()
  figures.copies += expected.length - missing.length
  for (const source of others)
    if (played.some(({ conversation }) => conversation.isCut && couldHold(conversation, source)))
      figures.unacknowledged++
    else figures.faults.push({ number: null, what: `a message that nobody sent: ${brief(source)}` })
  for (const { number, content } of missing)
    figures.faults.push({ number, what: `taken, and not there: ${brief(content)}` })
}

/** Matches each source to one message. Each message has one source. */
function match(sources: Buffer[], expected: Expected[]): { missing: Expected[]; others: Buffer[] } {
  const missing = [...expected]
  const others = sources.filter((source) => {
    const index = missing.findIndex(({ content }) => isSourceOf(source, content))
    if (index >= 0) missing.splice(index, 1)
    return index < 0
  })
  return { missing, others }
}

/** Reports whether the source is the message below the trace fields. The server ends an unfinished last line. */
function isSourceOf(source: Buffer, content: Buffer): boolean {
  const isEnded = content.length === 0 || content.subarray(-2).equals(crlf)
  const candidates = isEnded ? [content] : [content, Buffer.concat([content, crlf])]
  return candidates.some(
    (bytes) =>
      source.subarray(-bytes.length || source.length).equals(bytes) &&
      isTrace(source.subarray(0, source.length - bytes.length)),
  )
}

const crlf = Buffer.from('\r\n')

function isTrace(bytes: Buffer): boolean {
  const lines = bytes
    .toString('latin1')
    .replace(/\r\n[ \t]/g, ' ')
    .split('\r\n')
  return (
    lines.pop() === '' &&
    lines.every((line) =>
      /^(?:Return-Path|Delivered-To|Received|Authentication-Results|Received-SPF): /.test(line),
    )
  )
}

/** Reports whether the client may have sent the message before the cut, without awaiting its reply. */
function couldHold({ phases }: Conversation, source: Buffer): boolean {
  return phases.some(({ sent }) => {
    const inChunks = Buffer.from(sent.toString('latin1').replace(/BDAT \d+(?: LAST)?\r\n/gi, ''), 'latin1')
    for (let at = 0; at >= 0; at = source.indexOf(crlf, at) < 0 ? -1 : source.indexOf(crlf, at) + 2) {
      if (!isTrace(source.subarray(0, at))) continue
      const content = source.subarray(at)
      if (sent.includes(stuff(content)) || inChunks.includes(content)) return true
      if (content.subarray(-2).equals(crlf) && inChunks.includes(content.subarray(0, -2))) return true
    }
    return false
  })
}

const brief = (bytes: Buffer) =>
  `${bytes.length} bytes, ${JSON.stringify(bytes.toString('latin1').slice(0, 200))}`
