// Identifier alignment: whether what SPF and DKIM proved belongs to the organization of the author's domain.
import { fitsDns, isWithin, registeredDomain } from './dns-name.ts'
import type { AlignmentMode } from './record.ts'
import { type Organization, organizationalDomain, type RecordLookup, walkTree } from './tree-walk.ts'

/** `unknown` where DNS did not say; `unsought` where the message has too many identifiers for all to be asked for. */
export type Alignment =
  | { status: 'aligned' }
  | { status: 'unaligned' }
  | { status: 'unsought' }
  | { status: 'unknown'; reason: string }

export interface Author {
  domain: string
  organization: Organization
}

/** How many identifiers below the organization a message may have sought in DNS. */
const maxWalks = 4

/** Compares identifiers with authors, of one message: each identifier is sought once, and only so many of them. */
export class Aligner {
  readonly #ask: RecordLookup
  readonly #organizations = new Map<string, Promise<Organization>>()

  constructor(ask: RecordLookup) {
    this.#ask = ask
  }

  /** Whether the identifier, a domain in A-labels, aligns with the author's. */
  async align(identifier: string, author: Author, mode: AlignmentMode): Promise<Alignment> {
    if (identifier === author.domain) return { status: 'aligned' }
    // RFC 9989 4.10.2: strict alignment is a comparison of two names.
    if (mode === 'strict' || !fitsDns(identifier)) return { status: 'unaligned' }
    const { organization } = author
    const within = organization.status === 'known' ? organization.domain : organization.within
    // An organizational domain is the name itself or one above it: what is not below the author's has another.
    if (!isWithin(identifier, within)) return { status: 'unaligned' }
    if (organization.status === 'temporary') return { status: 'unknown', reason: organization.reason }
    const own = await this.#organizationOf(identifier, organization.domain)
    if (own === null) return { status: 'unsought' }
    if (own.status === 'temporary') return { status: 'unknown', reason: own.reason }
    return { status: own.domain === organization.domain ? 'aligned' : 'unaligned' }
  }

  #organizationOf(identifier: string, authors: string): Promise<Organization> | null {
    let own = this.#organizations.get(identifier)
    if (own !== undefined) return own
    // Against a message whose many signatures make it ask for many names; the author's own walk asked for this one.
    if (identifier !== authors && this.#organizations.size >= maxWalks) return null
    own = this.#seek(identifier)
    if (identifier !== authors) this.#organizations.set(identifier, own)
    return own
  }

  async #seek(identifier: string): Promise<Organization> {
    const { found, failure } = await walkTree(this.#ask, identifier)
    return failure === null
      ? { status: 'known', domain: organizationalDomain(identifier, found) }
      : { status: 'temporary', within: registeredDomain(identifier), reason: failure }
  }
}
