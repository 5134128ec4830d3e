// Identifier alignment: whether a domain that SPF or DKIM proved belongs to the organization of the author's domain.
import { fitsDns, isWithin, registeredDomain } from './dns-name.ts'
import type { AlignmentMode } from './record.ts'
import { type OrganizationalDomain, organizationalDomain, type RecordLookup, walkTree } from './tree-walk.ts'

/** `unknown`: DNS did not answer. `unsought`: the message has too many identifiers to look all of them up. */
export type Alignment =
  | { status: 'aligned' }
  | { status: 'unaligned' }
  | { status: 'unsought' }
  | { status: 'unknown'; reason: string }

export interface Author {
  domain: string
  organization: OrganizationalDomain
}

/** Identifiers below the organization that one message may have looked up in DNS. */
const maxWalks = 4

/**
 * Compares the identifiers of one message with its authors. Looks up each identifier once, and at most `maxWalks` of
 * them.
 */
export class Aligner {
  readonly #ask: RecordLookup
  readonly #organizations = new Map<string, Promise<OrganizationalDomain>>()

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
    // An organizational domain is the name itself or one above it. A name not below the author's has another organization.
    if (!isWithin(identifier, within)) return { status: 'unaligned' }
    if (organization.status === 'temporary') return { status: 'unknown', reason: organization.reason }
    const own = await this.#organizationOf(identifier, organization.domain)
    if (own === null) return { status: 'unsought' }
    if (own.status === 'temporary') return { status: 'unknown', reason: own.reason }
    return { status: own.domain === organization.domain ? 'aligned' : 'unaligned' }
  }

  #organizationOf(identifier: string, authors: string): Promise<OrganizationalDomain> | null {
    let own = this.#organizations.get(identifier)
    if (own !== undefined) return own
    // Against messages with many signatures, each of which asks for another name. The author's own walk has asked for
    // this name.
    if (identifier !== authors && this.#organizations.size >= maxWalks) return null
    own = this.#seek(identifier)
    if (identifier !== authors) this.#organizations.set(identifier, own)
    return own
  }

  async #seek(identifier: string): Promise<OrganizationalDomain> {
    const { found, failure } = await walkTree(this.#ask, identifier)
    return failure === null
      ? { status: 'known', domain: organizationalDomain(identifier, found) }
      : { status: 'temporary', within: registeredDomain(identifier), reason: failure }
  }
}
