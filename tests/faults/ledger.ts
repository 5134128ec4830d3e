// The ledger of a fault campaign: promises, findings, and every difference between the two.

/** One send under one idempotency key. `promised` are the ids of its first 202, null while none was read. */
export interface Send {
  key: string
  path: string
  body: unknown
  recipients: string[]
  promised: Promised | null
}

export interface Promised {
  submissionId: string
  messageId: string
  internetMessageId: string
}

/** One mail given to the MX. `unknown`: its final dot was written and no reply came. */
export interface Arrival {
  messageId: string
  address: string
  outcome: 'acknowledged' | 'unknown' | 'not_taken'
}

/**
 * Milliseconds since the epoch. From `settledMs` on, nothing sent before the kill can reach the sink. For a kill of
 * PostgreSQL alone, the service had recovered by then.
 */
export interface Kill {
  victim: string
  fromMs: number
  settledMs: number
}

/** The state after the last drain. */
export interface Found {
  /** The replay of each key; null if it was not a 202. */
  replays: Map<string, { promised: Promised; replayed: boolean } | null>
  /** Recipient states by submission id. */
  states: Map<string, string[]>
  /** The count of each stored inbound message, by `inboundKey` of its Message-ID and address. */
  stored: Map<string, number>
  /** The count of each outbound message id in an export. */
  outbound: Map<string, number>
  copies: { messageId: string; recipient: string; atMs: number }[]
}

export interface Ledger {
  figures: [name: string, figure: number][]
  violations: string[]
}

interface Book {
  sends: Send[]
  arrivals: Arrival[]
  kills: Kill[]
  found: Found
}

export const inboundKey = (messageId: string, address: string): string => `${messageId} ${address}`

// A result must be recorded well within this time of the remote's 250. A later kill excuses no copy.
const recordWithinMs = 2000

/** Compares promises with findings. Mail to `ownDomain` is looked up in the store, all other mail at the sink. */
export function reconcile(book: Book, ownDomain: string): Ledger {
  const violations: string[] = []
  const extra = { excused: 0, unexcused: 0, longestMs: 0 }
  const missing = { sends: 0, arrivals: 0 }
  judgeReplays(book, violations)
  judgeStates(book, violations)
  judgeArrivals(book, missing, violations)
  judgeCopies(book, ownDomain, { extra, missing }, violations)
  return { figures: figures(book, extra, missing), violations }
}

function judgeReplays({ sends, found }: Book, violations: string[]): void {
  for (const { key, promised } of sends) {
    const answer = found.replays.get(key)
    if (!answer) violations.push(`key ${key}: its replay was not answered with 202`)
    else if (promised && !answer.replayed)
      violations.push(`key ${key}: its 202 was forgotten, it was sent anew`)
    else if (promised && !sameIds(promised, answer.promised))
      violations.push(
        `key ${key}: promised ${Object.values(promised)}, replayed ${Object.values(answer.promised)}`,
      )
  }
}

const sameIds = (one: Promised, other: Promised): boolean =>
  one.messageId === other.messageId &&
  one.submissionId === other.submissionId &&
  one.internetMessageId === other.internetMessageId

function judgeStates({ sends, found }: Book, violations: string[]): void {
  for (const { key, recipients } of sends) {
    const ids = found.replays.get(key)?.promised
    if (!ids) continue
    const states = found.states.get(ids.submissionId) ?? []
    if (states.length !== recipients.length || states.some((state) => state !== 'delivered'))
      violations.push(`key ${key}: ${recipients.length} recipients ended as [${states}]`)
    const times = found.outbound.get(ids.messageId) ?? 0
    if (times !== 1) violations.push(`key ${key}: its message stands ${times} times in the export`)
  }
}

function judgeArrivals({ arrivals, found }: Book, missing: { arrivals: number }, violations: string[]): void {
  for (const { messageId, address, outcome } of arrivals) {
    const times = found.stored.get(inboundKey(messageId, address)) ?? 0
    if (times === 0 && outcome === 'acknowledged') missing.arrivals++
    const bounds = { acknowledged: [1, 1], unknown: [0, 1], not_taken: [0, 0] }[outcome]
    if (times < bounds[0]! || times > bounds[1]!)
      violations.push(`mail ${messageId}, ${outcome}: stored ${times} times`)
  }
}

interface Counts {
  extra: { excused: number; unexcused: number; longestMs: number }
  missing: { sends: number }
}

function judgeCopies({ sends, kills, found }: Book, own: string, counts: Counts, violations: string[]): void {
  const timesOf = new Map<string, number[]>()
  for (const { messageId, recipient, atMs } of found.copies) {
    const key = inboundKey(messageId, recipient)
    timesOf.set(key, [...(timesOf.get(key) ?? []), atMs])
  }
  for (const { key, recipients } of sends) {
    const messageId = found.replays.get(key)?.promised.internetMessageId
    if (!messageId) continue
    for (const recipient of recipients) {
      const copyKey = inboundKey(messageId, recipient)
      const isOwn = recipient.endsWith(`@${own}`)
      const times = isOwn ? [] : (timesOf.get(copyKey) ?? [])
      timesOf.delete(copyKey)
      const copies = isOwn ? (found.stored.get(copyKey) ?? 0) : times.length
      // Copies that our own MX took have no times, so only the number of kills bounds them.
      const gapsMs = excuses(times, kills)
      const excused = isOwn ? Math.min(copies - 1, kills.length) : gapsMs.length
      counts.extra.longestMs = Math.max(counts.extra.longestMs, ...gapsMs)
      if (copies === 0) {
        counts.missing.sends++
        violations.push(`key ${key}: nothing of ${messageId} reached ${recipient}`)
        continue
      }
      counts.extra.excused += excused
      counts.extra.unexcused += copies - 1 - excused
      if (copies - 1 > excused)
        violations.push(
          `key ${key}: ${recipient} got ${copies} copies, ${excused} of them excused by a kill${describeTimes(times, kills)}`,
        )
    }
  }
  for (const key of timesOf.keys()) violations.push(`the sink got what nobody sent: ${key}`)
}

/**
 * For each copy after a kill that came between the earlier copy's 250 and its record: the time from that 250 to the kill. It
 * is 0 for a copy that was still in transfer.
 */
function excuses(timesMs: number[], kills: Kill[]): number[] {
  const inOrder = timesMs.toSorted((one, other) => one - other)
  return inOrder.slice(1).flatMap((nextMs, index) => {
    const earlierMs = inOrder[index]!
    const kill = kills.find(
      ({ fromMs, settledMs }) =>
        earlierMs >= fromMs - recordWithinMs && earlierMs <= settledMs && nextMs >= fromMs,
    )
    return kill ? [Math.max(0, kill.fromMs - earlierMs)] : []
  })
}

/** Copies in our own inboxes have no times. */
function describeTimes(timesMs: number[], [first]: Kill[]): string {
  if (!first || timesMs.length === 0) return ''
  return `; they came ${timesMs.map((ms) => ms - first.fromMs).join(', ')} ms after the first kill`
}

function figures(
  { sends, arrivals, found }: Book,
  extra: Counts['extra'],
  missing: { sends: number; arrivals: number },
): Ledger['figures'] {
  const ended = (outcome: Arrival['outcome']) => arrivals.filter((mail) => mail.outcome === outcome).length
  return [
    ['sends', sends.length],
    ['  202 read', sends.filter(({ promised }) => promised).length],
    ['  recipients', sends.reduce((sum, { recipients }) => sum + recipients.length, 0)],
    ['  lost', missing.sends],
    ['  copies at the sink', found.copies.length],
    ['  extra copies that a kill excuses', extra.excused],
    ['  longest time from such a 250 to its kill, ms', extra.longestMs],
    ['  extra copies without excuse', extra.unexcused],
    ['mails given to the MX', arrivals.length],
    ['  250 read', ended('acknowledged')],
    ['  dot written, no reply read', ended('unknown')],
    ['  not taken', ended('not_taken')],
    ['  lost', missing.arrivals],
  ]
}

/** The number of kills of each victim, as lines of a ledger. */
export function countKills(kills: Kill[]): Ledger['figures'] {
  const byVictim = Map.groupBy(kills, ({ victim }) => victim)
  return [...byVictim].map(([victim, { length }]) => [`kills of ${victim}`, length])
}

/** Prints the ledger as a table, and below it up to 20 lines of violations. */
export function printLedger({ figures, violations }: Ledger): string {
  const width = Math.max(...figures.map(([name]) => name.length))
  const lines = figures.map(([name, figure]) => `${name.padEnd(width)}  ${String(figure).padStart(9)}`)
  const wrong = violations.slice(0, 20).map((violation) => `  ${violation}`)
  const more = violations.length > 20 ? [`  and ${violations.length - 20} more`] : []
  return [
    ...lines,
    `${'violations'.padEnd(width)}  ${String(violations.length).padStart(9)}`,
    ...wrong,
    ...more,
  ].join('\n')
}
