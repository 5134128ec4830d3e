// Verifies the DKIM signatures of a mail (RFC 6376, 8301, 8463), and gives a reason for each result.

import type { AuthResult } from '../../base/auth-result.ts'
import { type HeaderField, relaxField, signedHeader } from '../header-fields.ts'
import type { Asked } from '../lookup.ts'
import type { BodyHash } from './body-digest.ts'
import type { DkimKeyRecord } from './key-record.ts'
import {
  type DkimSignature,
  type Read,
  readDkimSignature,
  type SignatureLabels,
  type SignatureTags,
} from './signature.ts'
import type { SignerKeys } from './signer-keys.ts'
import { findVerifyingKey } from './verify-signature.ts'

/**
 * The meaning of one signature. With `pass`, `domain` vouches for the signed fields, From among them, and for the whole
 * body. Nothing else proves anything:
 * `fail`      header or body differ from what was signed;
 * `policy`    the signature may be good, but is not trusted: rsa-sha1, a key under 1024 bits, expired, l= before
 *             the end of the body, an unsigned second Subject or the like, or one signature too many;
 * `neutral`   it cannot be read; `permerror` it breaks a rule, or has no key; `temperror` DNS does not answer.
 */
export interface DkimVerdict extends SignatureLabels {
  result: AuthResult
  reason: string
  /** False if l= leaves bytes at the end of the body that anybody could have added, and if nothing was verified. */
  coversBody: boolean
  /** The key has t=y: the domain is only testing DKIM, and its failures mean nothing. */
  testing: boolean
  asked: Asked[]
}

type HashOf = (signature: SignatureTags) => BodyHash | null

const maxSignatures = 8

interface Candidate {
  field: HeaderField
  read: Read<DkimSignature>
  labels: SignatureLabels
  asked: Asked[]
}

/** The signatures of one mail, from the header to the verdicts. */
export class DkimSignatures {
  readonly #fields: readonly HeaderField[]
  readonly #keys: SignerKeys
  readonly #candidates: Candidate[]
  readonly #omitted: number

  /** Begins to ask for the keys. Uses only the first eight signatures, the most recently added ones. */
  constructor(fields: readonly HeaderField[], keys: SignerKeys, nowSeconds: number) {
    const signatures = fields.filter(({ name }) => name === 'dkim-signature')
    this.#fields = fields
    this.#keys = keys
    // RFC 6376 6.1: a verifier may limit the number of signatures, against mails made to be slow.
    this.#omitted = Math.max(0, signatures.length - maxSignatures)
    this.#candidates = signatures.slice(0, maxSignatures).map((field) => {
      const { labels, ...read } = readDkimSignature(field, nowSeconds)
      return { field, read, labels, asked: read.status === 'ok' ? keys.ask(read.tags) : [] }
    })
  }

  /** Signatures whose body hash `verdicts` needs. */
  get wanted(): SignatureTags[] {
    return this.#candidates.flatMap(({ read }) => (read.status === 'ok' ? [read.tags] : []))
  }

  /** One verdict per signature, in the order of the fields, and one for all signatures after the eighth. */
  async verdicts(hashOf: HashOf): Promise<DkimVerdict[]> {
    const verdicts = await Promise.all(this.#candidates.map((one) => this.#verify(one, hashOf)))
    if (this.#omitted === 0) return verdicts
    const reason = `${this.#omitted} more signatures than ${maxSignatures}: not verified`
    return [...verdicts, { ...unverified, result: 'policy', reason }]
  }

  async #verify({ field, read, labels, asked }: Candidate, hashOf: HashOf): Promise<DkimVerdict> {
    const verdict = { ...unverified, ...labels, asked }
    if (read.status === 'refused') return { ...verdict, ...read.refusal }
    const signature = read.tags
    const found = await this.#keys.find(signature, signature.algorithm)
    if (found.status === 'refused') return { ...verdict, ...found.refusal }
    const testing = found.keys.some(({ isTesting }) => isTesting)
    const keys = found.keys.filter(
      ({ isStrict }) => !isStrict || signature.identityDomain === signature.domain,
    )
    // RFC 6376 3.6.1: under t=s the domain of i= must be that of d=, not a subdomain.
    if (keys.length === 0)
      return { ...verdict, testing, result: 'permerror', reason: 'domain mismatch: i= under a key with t=s' }
    const outcome = verifyContent(this.#fields, field, { signature, keys, bodyHash: hashOf(signature) })
    const added = outcome.result === 'pass' ? findUnsignedDouble(this.#fields, signature) : null
    if (added !== null)
      return { ...verdict, testing, result: 'policy', reason: `a second ${added} is not signed` }
    return { ...verdict, testing, ...outcome }
  }
}

/** Fields that may occur only once (RFC 5322 3.6, RFC 2045), and that mail readers display or use for decoding. */
const singleFields = [
  ...['from', 'sender', 'reply-to', 'to', 'cc', 'subject', 'date', 'message-id', 'in-reply-to', 'references'],
  ...['mime-version', 'content-type', 'content-transfer-encoding'],
]

/**
 * The name of a signed field that occurs once more, unsigned. Null if there is none.
 * RFC 6376 8.15: an attacker may add a field above the signed one, and readers may show it as if it were signed.
 */
export function findUnsignedDouble(fields: readonly HeaderField[], { names }: SignatureTags): string | null {
  for (const single of singleFields) {
    const signed = names.filter((name) => name === single).length
    if (signed > 0 && fields.filter(({ name }) => name === single).length > signed) return single
  }
  return null
}

/** The verdict of a signature that was not verified. */
export const unverified: DkimVerdict = {
  result: 'none',
  reason: '',
  domain: null,
  selector: null,
  identity: null,
  algorithm: null,
  canonicalization: null,
  coversBody: false,
  testing: false,
  asked: [],
}

interface Signed {
  signature: SignatureTags
  keys: readonly DkimKeyRecord[]
  /** Null if the body is shorter than l=. */
  bodyHash: BodyHash | null
}

export type ContentVerdict = Pick<DkimVerdict, 'result' | 'reason' | 'coversBody'>

/** Whether header and body are as signed, with one of the keys. */
export function verifyContent(
  fields: readonly HeaderField[],
  field: HeaderField,
  { signature, keys, bodyHash }: Signed,
): ContentVerdict {
  if (bodyHash === null) return fail('the body is shorter than l=')
  if (!bodyHash.digest.equals(signature.bodyHash)) return fail('body hash did not verify')
  const key = findVerifyingKey(signature, canonicalHeader(fields, field, signature), keys)
  if (key === null) return fail('signature did not verify')
  const coversBody = bodyHash.isWhole
  // RFC 6376 8.2: anybody can add bytes after those that l= counts, and may hide all of the signed content.
  if (!coversBody) return { result: 'policy', reason: 'l= leaves the end of the body unsigned', coversBody }
  return { result: 'pass', reason: `verified with ${key.sizeBits} bits`, coversBody }
}

function fail(reason: string): ContentVerdict {
  return { result: 'fail', reason, coversBody: false }
}

function canonicalHeader(
  fields: readonly HeaderField[],
  own: HeaderField,
  { names, headerCanonicalization: canonicalization, unsigned }: SignatureTags,
): string {
  const header = signedHeader(fields, own, { names, canonicalization })
  // RFC 6376 3.7: the signature field itself comes last, without its line end.
  return header + (canonicalization === 'simple' ? unsigned : relaxField(unsigned))
}
