// Finds the keys of the signers of one mail. Asks for each name once, without waiting, and returns faults as values.
import type { Awaitable } from '../../base/within.ts'
import type { DnsAnswer } from '../../dns/resolver.ts'
import type { Asked, Lookup } from '../lookup.ts'
import { type DkimKeyRecord, readKeyRecord } from './key-record.ts'
import type { SignatureRefusal, VerifiedAlgorithm } from './signature.ts'

export type FoundKeys =
  | { status: 'ok'; keys: DkimKeyRecord[] }
  | { status: 'refused'; refusal: SignatureRefusal }

const maxRecords = 5
const maxNameLength = 253

interface Signer {
  domain: string
  selector: string
}

/** The name under which a signer publishes its key. */
export function keyNameOf({ domain, selector }: Signer): string {
  // RFC 6376 3.6.2.1: keys are published in the subdomain _domainkey.
  return `${selector}._domainkey.${domain}`
}

export class SignerKeys {
  readonly #lookup: Lookup
  readonly #answers = new Map<string, Awaitable<DnsAnswer<string>>>()

  constructor(lookup: Lookup) {
    this.#lookup = lookup
  }

  /** Number of names asked for so far. */
  get count(): number {
    return this.#answers.size
  }

  hasAsked(signer: Signer): boolean {
    return this.#answers.has(keyNameOf(signer))
  }

  /** Asks now for the key that `find` needs later. Returns the question as verdicts show it. */
  ask(signer: Signer): Asked[] {
    const name = keyNameOf(signer)
    if (name.length > maxNameLength) return []
    if (!this.#answers.has(name)) this.#answers.set(name, this.#lookup('TXT', name))
    return [`TXT ${name}`]
  }

  /**
   * Keys that may verify the signer's signatures, usually one. `temperror` if DNS does not answer, `permerror` if there
   * is no key, or `policy`, each with its reason.
   */
  async find(signer: Signer, algorithm: VerifiedAlgorithm): Promise<FoundKeys> {
    this.ask(signer)
    const answer = await this.#answers.get(keyNameOf(signer))
    if (answer === undefined) return refuse('permerror', 'no key: its name is too long for DNS')
    // RFC 6376 6.1.2: an answer that DNS cannot give now counts neither for nor against the signature.
    if (answer.status === 'temporary') return refuse('temperror', `key unavailable: ${answer.reason}`)
    if (answer.status !== 'ok') return refuse('permerror', 'no key for signature')
    return selectKeys(answer.records, algorithm)
  }
}

function refuse(result: SignatureRefusal['result'], reason: string): FoundKeys {
  return { status: 'refused', refusal: { result, reason } }
}

// RFC 6376 3.6.2.2: the meaning of several records is undefined. Any fitting one of the first five may verify the signature.
function selectKeys(records: readonly string[], algorithm: VerifiedAlgorithm): FoundKeys {
  const keys: DkimKeyRecord[] = []
  let refusal: SignatureRefusal | null = null
  for (const text of records.slice(0, maxRecords)) {
    const read = readKeyRecord(text)
    if (read.status === 'refused') refusal ??= read.refusal
    // RFC 6376 6.1.2: the key must be of the type that the signature's algorithm needs.
    else if (algorithm === `${read.tags.type}-sha256`) keys.push(read.tags)
    else refusal ??= { result: 'permerror', reason: 'inappropriate key algorithm' }
  }
  if (keys.length > 0) return { status: 'ok', keys }
  return { status: 'refused', refusal: refusal ?? { result: 'permerror', reason: 'no key for signature' } }
}
