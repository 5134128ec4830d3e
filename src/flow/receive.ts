// Takes mail from the wire: knows the address, looks for loops, commits bytes and envelope, and only then says 250.
import { Batch, BatchFull } from '../base/batch.ts'
import type { Clock } from '../base/clock.ts'
import { newId, newUuid, type OrganizationId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { meters } from '../base/meters.ts'
import type { SecretBox } from '../base/secret-box.ts'
import { traced } from '../base/trace.ts'
import type { BlobWriter, DiskBlobs } from '../blobs/disk.ts'
import { domainOfReturnPathHost } from '../dns/domain-records.ts'
import { scanHeader } from '../mail/header-scan.ts'
import type { Backend, Envelope, Incoming, Path } from '../smtp/backend.ts'
import { type Reply, reply } from '../smtp/reply.ts'
import { commitRows } from '../store/commit.ts'
import { type Db, DbFault } from '../store/db.ts'
import { type AddressedInbox, findInboxesByAddress } from '../store/inboxes.ts'
import { maxInlineBytes, type RawRow } from '../store/raws.ts'
import { insertReceived, type KeptRow, type ReceivedMail, type SpoolEnvelope } from '../store/spool.ts'
import type { ProvedDomains } from './proved-domains.ts'
import { readReturnPath } from './return-path.ts'

export interface ReceiverDeps {
  db: Db
  clock: Clock
  log: Log
  blobs: DiskBlobs
  secretBox: SecretBox
  hostname: string
  /** The deployment's own domain. */
  isLocal(domain: string): boolean
  /** Customers' domains that mail is received for. */
  domains: ProvedDomains
  /** Tells the filing that there is work. */
  wake(): void
}

/** A domain that mail is received for. `organizationId` is null for the deployment's own. */
interface ReceivingDomain {
  organizationId: OrganizationId | null
  /** A return-path host takes reports alone. */
  takes: 'mail' | 'reports'
}

/** What an address leads to. */
type Target = { inbox: AddressedInbox } | { kept: KeptRow['purpose'] } | { refusal: Reply }

const maxHops = 50
const addressCacheMs = 1_000
const maxCachedAddresses = 50_000
/** Mails in one commit: of more senders than one, who wait for each other. A slow disk is kept busy by one alone. */
const crowd = 2
/** Commits of a crowd are under way for such a share of the time when all that can be taken comes. */
const saturatedShare = 0.5

const unknownMailbox = reply(550, '5.1.1', 'There is no such mailbox here')
const relayDenied = reply(550, '5.7.1', 'Mail for that domain is not taken here')
const loop = reply(554, '5.4.6', 'This message is going round in circles')
const tooManyHops = reply(554, '5.4.6', `More than ${maxHops} Received fields`)
const busy = reply(451, '4.3.2', 'Too much mail at once, try again later')
const outOfOrder = reply(451, '4.3.0', 'The message could not be stored, try again later')
const noRoom = reply(452, '4.3.1', 'There is no room for the message, try again later')

/** The backend of the public MX. */
export class Receiver implements Backend {
  readonly #deps: ReceiverDeps
  readonly #lookups: Batch<string, AddressedInbox | null>
  readonly #commits: Batch<ReceivedMail, boolean | DbFault>
  readonly #known = new Map<string, { inbox: AddressedInbox; untilMs: number }>()
  /** For which share of the time commits of a crowd were under way, lately. */
  #share = 0
  /** Since when one is under way; there is one commit at a time. */
  #crowdedSinceMs: number | null = null
  /** How long they were, since somebody asked. */
  #crowdedMs = 0
  #askedMs = performance.now()

  constructor(deps: ReceiverDeps) {
    this.#deps = deps
    this.#lookups = new Batch({ name: 'find inboxes', flush: (addresses) => this.#findInboxes(addresses) })
    this.#commits = new Batch({
      name: 'receive',
      flush: (mails) => this.#commit(mails),
      sizeOf: ({ raw }) => raw.bytes?.length ?? 0,
      // A sender waits for each mail before the next, so two flights halve the batches: 1,750 mails a second against 1,900.
      maxFlights: 1,
    })
  }

  async recipient(_envelope: Envelope, to: Path): Promise<Reply | null> {
    const target = await this.#resolve(to)
    return 'refusal' in target ? target.refusal : null
  }

  message(envelope: Envelope): Incoming {
    const { blobs, log } = this.#deps
    return new Message(blobs, async (raw, header) => {
      try {
        const describe = () => ({ 'posthorn.bytes': raw.sizeBytes, 'client.address': envelope.peer.address })
        return await traced('receive', describe, () => this.#receive(envelope, raw, header))
      } catch (error) {
        if (error instanceof BatchFull) return busy
        if (!(error instanceof DbFault)) throw error
        log.warn({ fault: error.kind, reason: error.message }, 'a received message could not be stored')
        return error.sqlState === '53100' ? noRoom : outOfOrder
      }
    })
  }

  async drained(): Promise<void> {
    await this.#commits.drained()
  }

  /** Whether a crowd was being committed for most of the time since this was asked last: more mail comes than is taken. */
  isSaturated(): boolean {
    const nowMs = performance.now()
    this.#countCrowded(nowMs)
    this.#share = (this.#share + this.#crowdedMs / Math.max(1, nowMs - this.#askedMs)) / 2
    this.#crowdedMs = 0
    this.#askedMs = nowMs
    if (this.#crowdedSinceMs !== null) this.#crowdedSinceMs = nowMs
    return this.#share > saturatedShare
  }

  async #receive(envelope: Envelope, raw: RawRow, header: Buffer): Promise<Reply> {
    const refusal = looping(envelope, header)
    if (refusal) return refusal
    const mail = await this.#address(envelope, raw)
    if (mail.inboxes.length === 0 && mail.kept.length === 0) return unknownMailbox
    const stored = await this.#commits.add(mail)
    if (stored instanceof DbFault) throw stored
    if (!stored) return unknownMailbox
    this.#deps.wake()
    this.#tell(mail, envelope)
    return reply(250, '2.0.0', `Ok: kept as ${mail.inboxes[0]?.id ?? mail.kept[0]!.id}`)
  }

  #tell({ raw, inboxes, kept }: ReceivedMail, { peer }: Envelope): void {
    meters.received.inc()
    const told = { sizeBytes: raw.sizeBytes, peer: peer.address }
    for (const { id, inboxId } of inboxes)
      this.#deps.log.info({ message: id, inbox: inboxId, ...told }, 'a mail was received')
    for (const { id, purpose } of kept)
      this.#deps.log.info({ message: id, purpose, ...told }, 'a mail for the service was received')
  }

  /** Who gets it: every inbox its own row, with only its own recipients shown. */
  async #address(envelope: Envelope, raw: RawRow): Promise<ReceivedMail> {
    const receivedAt = this.#deps.clock.now()
    const mail: ReceivedMail = { raw, receivedAt, inboxes: [], kept: [] }
    const rows = new Map<string, ReceivedMail['inboxes'][number]>()
    for (const to of envelope.to) {
      const target = await this.#resolve(to)
      if ('refusal' in target) continue
      const id = newId('message', receivedAt.getTime())
      if ('kept' in target) {
        mail.kept.push({ id, purpose: target.kept, address: to.address, envelope: this.#seen(envelope, to) })
        continue
      }
      const { id: inboxId, organizationId } = target.inbox
      const row = rows.get(inboxId)
      if (row) row.envelope.recipients.push(to.address)
      else rows.set(inboxId, { id, organizationId, inboxId, envelope: this.#seen(envelope, to) })
    }
    mail.inboxes = [...rows.values()]
    return mail
  }

  #seen({ from, peer }: Envelope, to: Path): SpoolEnvelope {
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

  async #resolve({ localPart, domain }: Path): Promise<Target> {
    const { secretBox, clock, hostname } = this.#deps
    const name = localPart.toLowerCase().replace(/\+.*$/s, '')
    const receiving = await this.#findDomain(domain)
    if (!receiving) {
      // RFC 5321 4.5.1: postmaster of the host itself is always taken.
      return name === 'postmaster' && domain === hostname ? { kept: 'operator' } : { refusal: relayDenied }
    }
    if (name === 'postmaster' || name === 'abuse') return { kept: 'operator' }
    if (name === 'fbl') return { kept: 'feedback' }
    if (name.startsWith('bounce-')) {
      return readReturnPath(secretBox, name, domain, clock.now())
        ? { kept: 'return_path' }
        : { refusal: unknownMailbox }
    }
    if (receiving.takes === 'reports' || !/^[a-z0-9._-]{1,64}$/.test(name)) return { refusal: unknownMailbox }
    const inbox = await this.#findInbox(`${name}@${domain}`)
    // An inbox outlives the proof of its domain: the mail is whose the domain is, never the former owner's.
    const isTheirs = receiving.organizationId === null || inbox?.organizationId === receiving.organizationId
    return inbox && isTheirs ? { inbox } : { refusal: unknownMailbox }
  }

  /** Ours, a customer's whose ownership is proved, or the return-path host below one; null for all others. */
  async #findDomain(domain: string): Promise<ReceivingDomain | null> {
    const { isLocal, domains } = this.#deps
    if (isLocal(domain)) return { organizationId: null, takes: 'mail' }
    const proved = await domains.find(domain)
    if (proved) return { organizationId: proved.organizationId, takes: 'mail' }
    const above = domainOfReturnPathHost(domain)
    const parent = above === null ? null : await domains.find(above)
    return parent && { organizationId: parent.organizationId, takes: 'reports' }
  }

  /** A found inbox is remembered for a second; the commit checks again that it lives. */
  async #findInbox(address: string): Promise<AddressedInbox | null> {
    const now = this.#deps.clock.monotonicMs()
    const known = this.#known.get(address)
    if (known && now < known.untilMs) return known.inbox
    this.#known.delete(address)
    const inbox = await this.#lookups.add(address)
    if (!inbox) return null
    if (this.#known.size >= maxCachedAddresses) this.#known.clear()
    this.#known.set(address, { inbox, untilMs: now + addressCacheMs })
    return inbox
  }

  async #findInboxes(addresses: string[]): Promise<(AddressedInbox | null)[]> {
    const found = await findInboxesByAddress(this.#deps.db, [...new Set(addresses)])
    const byAddress = new Map(found.map((inbox) => [inbox.address, inbox]))
    return addresses.map((address) => byAddress.get(address) ?? null)
  }

  #countCrowded(untilMs: number): void {
    if (this.#crowdedSinceMs !== null) this.#crowdedMs += untilMs - this.#crowdedSinceMs
  }

  async #commit(mails: ReceivedMail[]): Promise<(boolean | DbFault)[]> {
    const { db, clock } = this.#deps
    if (mails.length >= crowd) this.#crowdedSinceMs = performance.now()
    try {
      return await commitRows(mails, (rows) => insertReceived(db, rows, clock.now()))
    } finally {
      this.#countCrowded(performance.now())
      this.#crowdedSinceMs = null
    }
  }
}

/** RFC 5321 6.3: a message that has come too far, or has been delivered to the same address before. */
function looping({ to }: Envelope, header: Buffer): Reply | null {
  const scan = scanHeader(header)
  if (scan.count('received') > maxHops) return tooManyHops
  const visited = new Set(scan.values('delivered-to').map((value) => value.trim().toLowerCase()))
  return to.some(({ address }) => visited.has(address.toLowerCase())) ? loop : null
}

/** Collects one message: in memory while it is small, in a blob from the moment that it is not. */
class Message implements Incoming {
  readonly #blobs: DiskBlobs
  readonly #receive: (raw: RawRow, header: Buffer) => Promise<Reply>
  readonly #id = newUuid()
  #chunks: Buffer[] = []
  #sizeBytes = 0
  #header: Buffer | null = null
  #blob: BlobWriter | null = null
  #writing: Promise<void> = Promise.resolve()

  constructor(blobs: DiskBlobs, receive: (raw: RawRow, header: Buffer) => Promise<Reply>) {
    this.#blobs = blobs
    this.#receive = receive
  }

  write(chunk: Buffer): void | Promise<void> {
    this.#sizeBytes += chunk.length
    this.#chunks.push(chunk)
    // What cannot be written is said at the end, in the words that it deserves.
    if (this.#sizeBytes > maxInlineBytes) return this.#spill().catch(() => {})
  }

  async end(): Promise<Reply> {
    const bytes = Buffer.concat(this.#chunks)
    if (!this.#header)
      return await this.#receive({ id: this.#id, sizeBytes: bytes.length, bytes, blob: null }, bytes)
    try {
      await this.#spill()
      await this.#blob!.commit()
    } catch (error) {
      await this.#blob?.abort()
      return storageReply(error)
    }
    const answer = await this.#receive(
      { id: this.#id, sizeBytes: this.#sizeBytes, bytes: null, blob: this.#id },
      this.#header,
    )
    // 451 may hide a commit whose outcome is unknown: only a refusal for good lets go of the bytes.
    if (answer.code >= 500) await this.#blobs.delete(this.#id)
    return answer
  }

  abort(): void {
    this.#chunks = []
    void this.#writing.catch(() => {}).then(() => this.#blob?.abort())
  }

  /** Moves what has come to the blob; the first 256 KiB stay at hand for the look at the header. */
  #spill(): Promise<void> {
    const chunk = Buffer.concat(this.#chunks.splice(0))
    this.#header ??= chunk
    this.#writing = this.#writing.then(async () => {
      this.#blob ??= await this.#blobs.create(this.#id)
      await this.#blob.write(chunk)
    })
    return this.#writing
  }
}

function storageReply(error: unknown): Reply {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EDQUOT') return noRoom
  if (code === undefined) throw error
  return outOfOrder
}
