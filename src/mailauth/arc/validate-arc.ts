// Validates the Authenticated Received Chain of a mail (RFC 8617 5.2): the hops that handled it, and their results.
import type { BodyHash } from '../dkim/body-digest.ts'
import type { SealTags, SignatureTags } from '../dkim/signature.ts'
import type { SignerKeys } from '../dkim/signer-keys.ts'
import { type ContentVerdict, findUnsignedDouble, verifyContent } from '../dkim/verify-dkim.ts'
import { findVerifyingKey } from '../dkim/verify-signature.ts'
import { type HeaderField, relaxField } from '../header-fields.ts'
import type { Asked } from '../lookup.ts'
import type { AuthResults } from '../parse-auth-results.ts'
import { type ArcChain, type ArcSet, readChain, reportedResults } from './chain.ts'

/**
 * `pass`: the seals are valid, and the mail is as the last sealer sent it. This proves nothing by itself, because
 * anybody can seal anything (see `vouchingSealer`). `temperror`: DNS does not answer. It must be written as `fail` (RFC
 * 8617 5.2.1).
 */
export interface ArcVerdict {
  result: 'none' | 'pass' | 'fail' | 'temperror'
  reason: string
  /** d= of the seals, the newest first. If the fields can be read, a failed chain has them too. */
  sealers: string[]
  /** The results that each sealer reported when the mail reached it, in the order of `sealers`. Null if unreadable. */
  authResults: (AuthResults | null)[]
  /**
   * Whether the newest message signature covers From and every instance of the fields that it covers. False unless the
   * chain passes.
   */
  coversFrom: boolean
  /** Whether it covers the whole body. */
  coversBody: boolean
  /** The oldest set whose message signature still passes. 0 if all do, null if that is not known. */
  oldestPass: number | null
  asked: Asked[]
}

type HashOf = (signature: SignatureTags) => BodyHash | null

// RFC 8617 9.2: a chain can request two keys a set. Real mail has few hops. A chain with more key names fails.
const maxKeyNames = 20
/** Bytes of header that may be hashed to find out how long the mail stayed unchanged. */
const maxOlderBytes = 4 << 20

export class ArcValidation {
  readonly #fields: readonly HeaderField[]
  readonly #keys: SignerKeys
  readonly #chain: ArcChain
  readonly #asked: Asked[] = []
  readonly #hasTooManyKeys: boolean

  /** Begins to ask for the keys, if the fields can form a chain. */
  constructor(fields: readonly HeaderField[], keys: SignerKeys, nowSeconds: number) {
    this.#fields = fields
    this.#keys = keys
    this.#chain = withoutRefusal(readChain(fields, nowSeconds))
    this.#hasTooManyKeys = this.#ask()
  }

  /** Message signatures whose body hash `verdict` needs. */
  get wanted(): SignatureTags[] {
    return this.#sets.flatMap(({ message }) => message.ways)
  }

  get #sets(): ArcSet[] {
    return this.#chain.status === 'ok' ? this.#chain.sets : []
  }

  /**
   * Whether the chain needs more key names than allowed. Keys of older message signatures are asked for only within that
   * limit.
   */
  #ask(): boolean {
    const newestFirst = this.#sets.toReversed()
    const [newest, ...older] = newestFirst.flatMap(({ message }) => message.ways.slice(0, 1))
    if (newest === undefined) return false
    const needed = [newest, ...newestFirst.map(({ seal }) => seal.tags)]
    const before = this.#keys.count
    for (const [index, signer] of [...needed, ...older].entries()) {
      const hasRoom = this.#keys.count - before < maxKeyNames || this.#keys.hasAsked(signer)
      if (!hasRoom && index < needed.length) return true
      for (const asked of hasRoom ? this.#keys.ask(signer) : [])
        if (!this.#asked.includes(asked)) this.#asked.push(asked)
    }
    return false
  }

  async verdict(hashOf: HashOf): Promise<ArcVerdict> {
    const newestFirst = this.#sets.toReversed()
    const verdict: ArcVerdict = {
      result: 'none',
      reason: 'no ARC sets',
      sealers: newestFirst.map(({ seal }) => seal.tags.domain),
      authResults: newestFirst.map(({ results }) => reportedResults(results)),
      coversFrom: false,
      coversBody: false,
      oldestPass: null,
      asked: this.#asked,
    }
    if (this.#chain.status === 'none') return verdict
    if (this.#chain.status === 'failed') return { ...verdict, result: 'fail', reason: this.#chain.reason }
    if (this.#hasTooManyKeys)
      return { ...verdict, result: 'fail', reason: `more than ${maxKeyNames} names of keys` }
    return { ...verdict, ...(await this.#validate(newestFirst, hashOf)) }
  }

  async #validate(newestFirst: readonly ArcSet[], hashOf: HashOf): Promise<Partial<ArcVerdict>> {
    const newest = newestFirst[0]!
    // RFC 8617 5.2: the newest message signature must pass, because it covers the mail as it arrived.
    const message = await this.#verifyMessage(newest, hashOf)
    if (!isUnchanged(message)) return chainVerdict('message signature', newest.instance, message)
    // RFC 8617 5.2: each seal must pass too, the newest first.
    for (const set of newestFirst) {
      const seal = await this.#verifySeal(set)
      if (seal.result !== 'pass') return chainVerdict('seal', set.instance, seal)
    }
    return {
      result: 'pass',
      reason: `${newestFirst.length} sealed`,
      coversFrom: this.#coversFrom(newest.message.ways[0]!),
      coversBody: message.coversBody,
      oldestPass: await this.#findOldestPass(newestFirst, hashOf),
    }
  }

  #coversFrom(signature: SignatureTags): boolean {
    return signature.names.includes('from') && findUnsignedDouble(this.#fields, signature) === null
  }

  async #verifyMessage(
    { message: { field, ways, refusal } }: ArcSet,
    hashOf: HashOf,
  ): Promise<ContentVerdict> {
    let verdict: ContentVerdict = { result: 'fail', reason: refusal, coversBody: false }
    for (const signature of ways) {
      const found = await this.#keys.find(signature, signature.algorithm)
      if (found.status === 'refused') return { ...failedBy(found.refusal), coversBody: false }
      const bodyHash = hashOf(signature)
      verdict = verifyContent(this.#fields, field, { signature, keys: found.keys, bodyHash })
      if (isUnchanged(verdict)) break
    }
    return verdict
  }

  async #verifySeal({ instance, seal }: ArcSet): Promise<Outcome> {
    const found = await this.#keys.find(seal.tags, seal.tags.algorithm)
    if (found.status === 'refused') return failedBy(found.refusal)
    const covered = sealedHeader(this.#sets.slice(0, instance), seal.tags)
    const isGood = findVerifyingKey(seal.tags, covered, found.keys) !== null
    return isGood ? { result: 'pass', reason: '' } : { result: 'fail', reason: 'did not verify' }
  }

  /** RFC 8617 5.2: checks older message signatures until one fails. They decide nothing. */
  async #findOldestPass([, ...older]: readonly ArcSet[], hashOf: HashOf): Promise<number | null> {
    let hashedBytes = 0
    for (const set of older) {
      const [signature] = set.message.ways
      hashedBytes += this.#fields.reduce((sum, { text }) => sum + text.length, 0)
      if (hashedBytes > maxOlderBytes || (signature && !this.#keys.hasAsked(signature))) return null
      const message = await this.#verifyMessage(set, hashOf)
      if (message.result === 'temperror') return null
      if (!isUnchanged(message)) return set.instance + 1
    }
    return 0
  }
}

/** Fails the chain before any look-up if its newest message signature cannot be used. */
function withoutRefusal(chain: ArcChain): ArcChain {
  const newest = chain.status === 'ok' ? chain.sets.at(-1)! : null
  if (newest === null || newest.message.ways.length > 0) return chain
  const { instance, message } = newest
  return { status: 'failed', reason: `message signature ${instance}: ${message.refusal}` }
}

/** Whether the signed content is unchanged. `policy` counts: l= leaves a part unsigned, which is reported separately. */
function isUnchanged({ result }: ContentVerdict): boolean {
  return result === 'pass' || result === 'policy'
}

type Outcome = Pick<ContentVerdict, 'result' | 'reason'>

function failedBy({ result, reason }: Outcome): Outcome {
  return { result: result === 'temperror' ? 'temperror' : 'fail', reason }
}

function chainVerdict(what: string, instance: number, { result, reason }: Outcome): Partial<ArcVerdict> {
  return { result: result === 'temperror' ? 'temperror' : 'fail', reason: `${what} ${instance}: ${reason}` }
}

// RFC 8617 5.1.1: a seal covers all sets up to its own, each as results, message signature and seal, in relaxed form.
// The seal itself comes last, with an empty b= and without its line end.
function sealedHeader(sets: readonly ArcSet[], own: SealTags): string {
  const covered = sets.flatMap(({ results, message, seal }) => [
    results.relaxed,
    message.field.relaxed,
    seal.field.relaxed,
  ])
  return [...covered.slice(0, -1), relaxField(own.unsigned)].join('\r\n')
}
