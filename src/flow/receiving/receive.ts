// Receives mail over SMTP: resolves addresses, detects loops, commits bytes and envelope, and only then answers 250.
import { Batch, BatchFull } from '../../base/batch.ts'
import { newId } from '../../base/ids.ts'
import { wideNetworkOf } from '../../base/ip-address.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import { OutageLog } from '../../base/outage-log.ts'
import type { RecentlyUsed } from '../../base/recently-used.ts'
import { traced } from '../../base/trace.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import type { DiskReserve } from '../../blobs/disk-reserve.ts'
import { scanHeader } from '../../mail/read/header-scan.ts'
import { readReturnPath } from '../../mail/return-path.ts'
import { commitRows } from '../../postgres/commit.ts'
import { DbFault, isLost } from '../../postgres/db.ts'
import { type Reply, reply, replyLine } from '../../smtp/reply.ts'
import type { Backend, Envelope, Incoming, Path } from '../../smtp/server/backend.ts'
import type { MailFindings } from '../../store/mailbox/messages.ts'
import type { RawRow } from '../../store/mailbox/raws.ts'
import {
  insertReceived,
  type Received,
  type ReceivedMail,
  type SpoolEnvelope,
} from '../../store/mailbox/spool.ts'
import { deleteUnnamed } from '../delete-blobs.ts'
import { MessageSink, noRoom, outOfOrder, storageReply, type TakenMessage } from '../message-sink.ts'
import type { Verdicts } from './evaluation.ts'
import { KeptRooms, keptBounds, maxKeptBytes } from './kept-rooms.ts'
import { Mailboxes, type MailboxesDeps, unknownMailbox } from './mailboxes.ts'
import { copyOf, full, Rooms, tooLarge } from './rooms.ts'
import type { Decision, SenderChecks } from './sender-checks.ts'

export interface ReceiverDeps extends MailboxesDeps {
  /** Whether the address is a trusted peer's. Such peers have no share of the service's own mail. */
  isTrusted(address: string): boolean
  log: Log
  blobs: Blobs
  disk: Pick<DiskReserve, 'isShort'>
  senderChecks: SenderChecks
  /** Called when there is new mail to file. */
  wake(): void
  /** The bytes of mail that this node is about to file, by id of the raw row. */
  rawCache?: RecentlyUsed<Buffer> | undefined
}

type EvaluatedMessage = TakenMessage & { verdicts: Verdicts | null; endedMs: number }

const maxHops = 50

const loop = reply(554, '5.4.6', 'Mail loop detected')
const tooManyHops = reply(554, '5.4.6', `Too many hops, more than ${maxHops} Received fields`)
const headerTooLarge = reply(552, '5.3.4', 'Message header exceeds 256 KiB')
const keptBefore = reply(250, '2.0.0', 'Ok: already queued')
const busy = reply(451, '4.3.2', 'Too much mail at once, try again later')

/**
 * A success ends an outage in the log only this long after the last failure. Inboxes are cached for a second, so some
 * recipients succeed during an outage of the database.
 */
const outageQuietMs = 2_000

/** The backend of the public MX. */
export class Receiver implements Backend {
  readonly #deps: ReceiverDeps
  readonly #outage: OutageLog
  readonly #mailboxes: Mailboxes
  readonly #commits: Batch<ReceivedMail, Received | DbFault>
  readonly #rooms: Rooms

  constructor(deps: ReceiverDeps) {
    this.#deps = deps
    this.#outage = new OutageLog({ log: deps.log, work: 'receiving', quietMs: outageQuietMs })
    this.#mailboxes = new Mailboxes(deps)
    this.#rooms = new Rooms({
      mailboxes: this.#mailboxes,
      keptRooms: new KeptRooms(deps),
      networkOf: (envelope) => this.#networkOf(envelope),
    })
    this.#commits = new Batch({
      name: 'receive',
      flush: (mails) => this.#commit(mails),
      sizeOf: ({ raw }) => raw.bytes?.length ?? 0,
      // A sender waits for each mail before the next, so two flights halve the batches: 1,750 mails a second against 1,900.
      maxInFlight: 1,
    })
  }

  async recipient(envelope: Envelope, to: Path): Promise<Reply | null> {
    // RFC 5321 4.2.3: 452, insufficient system storage.
    if (this.#deps.disk.isShort) return noRoom
    try {
      const refusal = await this.#refusalOf(envelope, to)
      this.#outage.succeed()
      if (refusal === null) this.#deps.senderChecks.of(envelope)
      return refusal
    } catch (error) {
      if (!isLost(error)) throw error
      this.#outage.fail(error)
      return outOfOrder
    }
  }

  async #refusalOf(envelope: Envelope, to: Path): Promise<Reply | null> {
    const target = await this.#mailboxes.resolve(to)
    if ('refusal' in target) return target.refusal
    return await this.#rooms.refusalOf(envelope, target)
  }

  message(envelope: Envelope): Incoming {
    const sink = new MessageSink(this.#deps.blobs)
    const evaluation = this.#deps.senderChecks.of(envelope)
    return {
      write: (chunk) => {
        evaluation.write(chunk)
        return sink.write(chunk)
      },
      abort: () => sink.abort(),
      end: async () => {
        const endedMs = this.#deps.clock.monotonicMs()
        const [taken, verdicts] = await Promise.all([sink.end().catch(storageReply), evaluation.end()])
        return 'code' in taken ? taken : await this.#answer(envelope, { ...taken, verdicts, endedMs })
      },
    }
  }

  async #answer(envelope: Envelope, message: EvaluatedMessage): Promise<Reply> {
    const { raw } = message
    const { blobs, log } = this.#deps
    try {
      const describe = () => ({ 'posthorn.bytes': raw.sizeBytes, 'client.address': envelope.peer.address })
      const answer = await traced('receive', describe, () => this.#receive(envelope, message))
      // A refused mail, or one stored before, needs no blob. If the outcome of a commit is unknown, the commit throws, and
      // the sweeper later deletes an unused blob.
      if ((answer.code !== 250 || answer === keptBefore) && raw.blob) await deleteUnnamed({ blobs }, raw.blob)
      this.#outage.succeed()
      return answer
    } catch (error) {
      if (!(error instanceof DbFault)) throw error
      if (isLost(error)) this.#outage.fail(error)
      else log.warn({ fault: error.kind, reason: error.message }, 'received message could not be stored')
      return error.sqlState === '53100' ? noRoom : outOfOrder
    }
  }

  async drained(): Promise<void> {
    await this.#commits.drained()
  }

  async #receive(envelope: Envelope, { start, verdicts, ...message }: EvaluatedMessage): Promise<Reply> {
    if (verdicts === null) return headerTooLarge
    const loops = looping(envelope, start)
    if (loops) return loops
    if (this.#deps.disk.isShort) return noRoom
    let mail = await this.#address(envelope, message.raw)
    const isForInbox = mail.inboxes.length > 0
    if (!isForInbox && mail.kept.length === 0) return unknownMailbox
    if (mail.kept.some(({ purpose }) => message.raw.sizeBytes > maxKeptBytes[purpose])) {
      this.#rooms.noteTooLarge(envelope, mail)
      return isForInbox ? full : tooLarge
    }
    const evaluated = { ...message, verdicts, isForInbox }
    const { findings, refusal } = await this.#deps.senderChecks.decide(envelope, evaluated)
    if (refusal) return this.#refuse(envelope, refusal, findings)
    let stored = await this.#store(mail, findings)
    if (stored === 'gone') {
      // The inboxes were deleted within the last second, and their addresses may have new inboxes. Or two attempts of the
      // same delivery arrived at once.
      mail = await this.#address(envelope, message.raw, this.#deps.clock.monotonicMs())
      stored = await this.#store(mail, findings)
    }
    if (stored instanceof DbFault) throw stored
    if (typeof stored === 'object') return stored
    if (stored === 'gone') return unknownMailbox
    if (stored === 'known') {
      this.#deps.log.info(
        { ...mail.delivery },
        'mail from another node was already stored by an earlier attempt',
      )
      return keptBefore
    }
    if (stored === 'over') {
      // The mail was stored for no recipient, because one reply holds for all. When it is retried, recipients without room
      // are refused at RCPT.
      this.#rooms.noteTooLarge(envelope, mail)
      return full
    }
    this.#deps.wake()
    this.#logReceived(mail, envelope)
    return reply(250, '2.0.0', `Ok: queued as ${mail.inboxes[0]?.id ?? mail.kept[0]!.id}`)
  }

  /** Puts the bytes into `rawCache` before the mail can be claimed. */
  async #store(mail: ReceivedMail, findings: MailFindings): Promise<Received | DbFault | Reply> {
    for (const row of [...mail.inboxes, ...mail.kept]) row.envelope.findings = findings
    const { id, bytes } = mail.raw
    const { rawCache } = this.#deps
    if (bytes && mail.inboxes.length > 0) rawCache?.set(id, bytes, bytes.length)
    const stored = await this.#commits.add(mail).catch(busyReply)
    if (stored !== 'stored') rawCache?.delete(id)
    return stored
  }

  #refuse({ peer, from }: Envelope, refusal: Reply, { spam }: Decision['findings']): Reply {
    const fields = { peer: peer.address, from: from.address, reply: replyLine(refusal), ...spam }
    this.#deps.log.info(fields, 'mail refused by sender checks or as spam')
    return refusal
  }

  #logReceived({ raw, inboxes, kept }: ReceivedMail, { peer }: Envelope): void {
    meters.received.inc()
    const fields = { sizeBytes: raw.sizeBytes, peer: peer.address }
    for (const { id, inboxId } of inboxes)
      this.#deps.log.info({ message: id, inbox: inboxId, ...fields }, 'mail received')
    for (const { id, purpose } of kept)
      this.#deps.log.info({ message: id, purpose, ...fields }, 'mail for the service received')
  }

  /** Resolves the recipients. Each inbox and purpose of the service gets its own row, with only its own recipients. */
  async #address(envelope: Envelope, raw: RawRow, sinceMs?: number): Promise<ReceivedMail> {
    const receivedAt = this.#deps.clock.now()
    const mail: ReceivedMail = {
      raw,
      receivedAt,
      inboxes: [],
      kept: [],
      delivery: this.#deliveryOf(envelope),
    }
    const copies = new Map<string, SpoolEnvelope>()
    for (const to of envelope.to) {
      const target = await this.#mailboxes.resolve(to, sinceMs)
      if ('refusal' in target) continue
      const earlier = copies.get(copyOf(target))
      if (earlier) {
        earlier.recipients.push(to.address)
        continue
      }
      const row = {
        id: newId('message', receivedAt.getTime()),
        envelope: this.#copyEnvelope(envelope, to),
      }
      copies.set(copyOf(target), row.envelope)
      if ('inbox' in target) {
        const { id: inboxId, organizationId } = target.inbox
        mail.inboxes.push({ ...row, organizationId, inboxId })
      } else {
        const { kept: purpose, submissionId } = target
        const network = this.#networkOf(envelope)
        mail.kept.push({ ...row, purpose, submissionId, network, address: to.address })
      }
    }
    return mail
  }

  /**
   * The delivery that the return path names, if the client is a node of ours. Any recipient of our mail knows this return
   * path, so for other clients the path proves nothing.
   */
  #deliveryOf({ peer, from }: Envelope): ReceivedMail['delivery'] {
    const { secretBox, clock } = this.#deps
    return peer.isOwn ? readReturnPath(secretBox, from.localPart, from.domain, clock.now()) : null
  }

  #networkOf({ peer }: Envelope): string | null {
    return this.#deps.isTrusted(peer.address) ? null : wideNetworkOf(peer.address)
  }

  #copyEnvelope({ from, peer }: Envelope, to: Path): SpoolEnvelope {
    return {
      from: from.address,
      recipients: [to.address],
      helo: peer.helo,
      remoteIp: peer.address,
      tls: peer.tls,
      protocol: peer.protocol,
      receivedBy: this.#deps.hostname,
    }
  }

  async #commit(mails: ReceivedMail[]): Promise<(Received | DbFault)[]> {
    const { db, clock } = this.#deps
    const insert = (rows: ReceivedMail[]) => insertReceived(db.writer, rows, keptBounds, clock.now())
    return await commitRows(mails, insert)
  }
}

function busyReply(error: unknown): Reply {
  if (error instanceof BatchFull) return busy
  throw error
}

/** RFC 5321 6.3: detects a message with too many hops, or one that was delivered to the same address before. */
function looping({ to }: Envelope, header: Buffer): Reply | null {
  const scan = scanHeader(header)
  if (scan.count('received') > maxHops) return tooManyHops
  const visited = new Set(scan.values('delivered-to').map((value) => value.trim().toLowerCase()))
  return to.some(({ address }) => visited.has(address.toLowerCase())) ? loop : null
}
