// Accepts mail over SMTP submission: the client's API key, its recipients and the bytes of each message.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { OutageLog } from '../../base/outage-log.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { readEmail } from '../../mail/address.ts'
import { readWrittenHeader, type WrittenHeader } from '../../mail/write/written-header.ts'
import { readAuthorDomains } from '../../mailauth/dmarc/author-domain.ts'
import { type Reply, reply } from '../../smtp/reply.ts'
import type { Backend, Envelope, Gate, Incoming, Path, ReversePath } from '../../smtp/server/backend.ts'
import type { RawRow } from '../../store/mailbox/raws.ts'
import type { Caller } from '../caller.ts'
import { deleteUnnamed } from '../delete-blobs.ts'
import { HeaderSplit } from '../header-split.ts'
import { MessageSink, storageReply } from '../message-sink.ts'
import type { Acceptance } from './accept-send.ts'
import type { SendContents } from './send-contents.ts'
import { addressTo } from './send-draft.ts'
import { requireRecipients, requireSize } from './send-policy.ts'
import { refusalReply } from './submission-replies.ts'
import { compileWritten } from './written-mail.ts'

export interface SubmissionDeps {
  clock: Clock
  log: Log
  blobs: Blobs
  acceptance: Pick<Acceptance, 'acceptWritten'>
  contents: Pick<SendContents, 'read'>
  /** The caller with this key; null if it may not call from this address. */
  authenticate(secret: string, ip: string): Promise<Caller | null>
  /** Counts one request of the key's limit. */
  admit(caller: Caller): Promise<{ isAllowed: boolean; resetSeconds: number }>
  /** The code and the words of a failure; `internal_error` if it is our bug. */
  describe(failure: unknown): { error: string; message: string }
}

/** Returns the caller as it is now, or null if its key is no longer valid. */
type FindCaller = () => Promise<Caller | null>

const headerTooLarge = reply(552, '5.3.4', 'Message header exceeds 256 KiB')
const wrongKey = reply(
  535,
  '5.7.8',
  'Authentication credentials invalid: the password must be a valid API key',
)
const wideHeader = reply(
  550,
  '5.6.7',
  'The header has characters beyond ASCII: encode them (RFC 2047), or use SMTPUTF8',
)
const unusableAddress = reply(550, '5.1.3', 'This address cannot be a recipient')
const outageQuietMs = 2_000

/** Lets clients in whose password is an API key. Each gets a backend of its own. */
export class Submissions implements Pick<Gate, 'admit'> {
  readonly #deps: SubmissionDeps
  readonly #outage: OutageLog

  constructor(deps: SubmissionDeps) {
    this.#deps = deps
    this.#outage = new OutageLog({ log: deps.log, work: 'submissions', quietMs: outageQuietMs })
  }

  async admit(secret: string, address: string): Promise<Backend | Reply> {
    const find = () => this.#deps.authenticate(secret, address)
    const refusal = await this.#replying(async () => ((await find()) ? null : wrongKey))
    if (refusal) return refusal
    let caller: Caller | null = null
    const current = () => caller ?? fail('a recipient came before MAIL')
    return {
      begin: (from) =>
        this.#replying(async () => {
          caller = await find()
          return caller ? await this.#refuseMessage(caller, from) : wrongKey
        }),
      recipient: (envelope, to) =>
        this.#replying(async () => refuseRecipient(current(), envelope.to.length, to)),
      message: (envelope) => this.#receive(current(), find, envelope),
    }
  }

  async #refuseMessage(caller: Caller, { sizeBytes }: ReversePath): Promise<Reply | null> {
    const { isAllowed, resetSeconds } = await this.#deps.admit(caller)
    if (!isAllowed) throw new ServiceError('rate_limited', undefined, resetSeconds)
    if (caller.organizationStatus !== 'active') throw new ServiceError('organization_inactive')
    requireSize(caller, sizeBytes ?? 0)
    return null
  }

  /** Stores the bytes as they arrive. The header is prepared first. */
  #receive(caller: Caller, find: FindCaller, envelope: Envelope): Incoming {
    const sink = new MessageSink(this.#deps.blobs)
    let header: WrittenHeader | Reply = headerTooLarge
    let writing: void | Promise<void>
    const split = new HeaderSplit({
      header: (bytes) => {
        if (bytes) header = this.#readHeader(caller, envelope, bytes)
        // RFC 5322 2.1: an empty line separates the header from the body.
        if ('bytes' in header) writing = sink.write(Buffer.concat([header.bytes, emptyLine]))
      },
      body: (chunk) => {
        if ('bytes' in header) writing = sink.write(chunk)
      },
    })
    return {
      write: (chunk) => {
        split.write(chunk)
        return writing
      },
      abort: () => sink.abort(),
      end: async () => {
        split.end()
        return 'code' in header ? header : await this.#end(find, envelope, sink, header)
      },
    }
  }

  #readHeader(caller: Caller, { from }: Envelope, bytes: Buffer): WrittenHeader | Reply {
    const writer = caller.kind === 'agent' ? 'agent' : 'other'
    const header = readWrittenHeader(bytes, { at: this.#deps.clock.now(), newId: newUuid(), writer })
    if ('fault' in header) return refusalReply('invalid_request', header.fault)
    // Security: we sign for the domain of From, so no reader may see another address in it.
    const { fault } = readAuthorDomains(bytes)
    if (fault) return refusalReply('invalid_request', `The sender is not clear: ${fault}.`)
    // RFC 6531 3.4: a header beyond ASCII needs a transaction that asked for SMTPUTF8.
    return header.isWide && !from.needsUtf8 ? wideHeader : header
  }

  async #end(find: FindCaller, envelope: Envelope, sink: MessageSink, header: WrittenHeader): Promise<Reply> {
    const taken = await sink.end().catch(storageReply)
    if ('code' in taken) return taken
    return await this.#replying(() => this.#accept(find, envelope, taken.raw, header))
  }

  async #accept(find: FindCaller, envelope: Envelope, raw: RawRow, header: WrittenHeader): Promise<Reply> {
    const { contents, acceptance } = this.#deps
    const { to: recipients, recipients: known } = addressTo({
      to: envelope.to.map(({ address }) => ({ email: address })),
    })
    try {
      // Security: the key may have been revoked since MAIL.
      const caller = await find()
      if (!caller) throw new ServiceError('unauthorized')
      const parsed = await contents.read(caller, raw, known)
      const tlsWish = envelope.from.requiresTls ? 'required' : header.tlsWish
      const mail = compileWritten({ ...header, tlsWish }, parsed, raw, recipients)
      const { submission, replayed } = await acceptance.acceptWritten(caller, mail)
      if (replayed) await this.#drop(raw)
      return reply(250, '2.0.0', `Ok: queued as ${submission.id}`)
    } catch (failure) {
      // Refused. After any other failure the outcome is unknown, and the sweep deletes an unused blob.
      if (failure instanceof ServiceError) await this.#drop(raw)
      throw failure
    }
  }

  async #drop({ blob }: RawRow): Promise<void> {
    if (blob) await deleteUnnamed(this.#deps, blob)
  }

  /** Runs one step. Returns the reply to its failure, or throws a bug of ours, which the server logs. */
  async #replying<Result>(step: () => Promise<Result>): Promise<Result | Reply> {
    try {
      const result = await step()
      this.#outage.succeed()
      return result
    } catch (failure) {
      const { error, message } = this.#deps.describe(failure)
      if (error === 'internal_error') throw failure
      if (error === 'unavailable') this.#outage.fail(failure)
      return refusalReply(error, message)
    }
  }
}

const emptyLine = Buffer.from('\r\n')

function refuseRecipient(caller: Caller, earlier: number, { address }: Path): Reply | null {
  const recipient = readEmail(address)
  if (recipient === null) return unusableAddress
  requireRecipients(caller, 'submission', [recipient])
  // RFC 5321 4.5.3.1.10: recipients past the limit are 452, those before it are kept.
  if (earlier >= caller.limits.recipientsPerMessage) throw new ServiceError('too_many_recipients')
  return null
}

function fail(reason: string): never {
  throw new Error(reason)
}
