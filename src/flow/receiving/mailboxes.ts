// Resolves an address to an inbox, to mail for the service itself, or to a refusal.
import type { Clock } from '../../base/clock.ts'
import type { OrganizationId, SubmissionId } from '../../base/ids.ts'
import { KnownFor, recheckRefusal } from '../../base/known-for.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import { domainOfReturnPathHost } from '../../dns/domain-records.ts'
import { isTlsReports } from '../../mail/reserved-names.ts'
import { readReturnPath } from '../../mail/return-path.ts'
import type { Db } from '../../postgres/db.ts'
import { type Reply, reply } from '../../smtp/reply.ts'
import type { Path } from '../../smtp/server/backend.ts'
import { type AddressedInbox, findInboxesByAddress } from '../../store/mailbox/inboxes.ts'
import type { KeptRow } from '../../store/mailbox/spool.ts'
import { ownOrganizationId } from '../own-organization.ts'
import type { ProvedDomains } from '../proved-domains.ts'

export interface MailboxesDeps {
  db: Db
  clock: Clock
  secretBox: SecretBox
  hostname: string
  /** The deployment's own domain. */
  isLocal(domain: string): boolean
  /** The customers' domains that receive mail here. */
  domains: ProvedDomains
}

/** A domain that receives mail here. `organizationId` is null for the deployment's own. */
interface ReceivingDomain {
  organizationId: OrganizationId | null
  /** `reports`: the mail host or a return-path host, which has no inboxes. */
  takes: 'mail' | 'reports'
}

/** The destination of an address that accepts mail. */
export type LocalMailbox =
  | { inbox: AddressedInbox }
  | { kept: KeptRow['purpose']; submissionId: SubmissionId | null }
export type Target = LocalMailbox | { refusal: Reply }

/** How long a resolved inbox is cached. */
const knownMs = 1_000

export const unknownMailbox = reply(550, '5.1.1', 'Recipient address rejected: no such mailbox')
const relayDenied = reply(550, '5.7.1', 'Relay access denied, use the HTTP API to send mail')

export class Mailboxes {
  readonly #deps: MailboxesDeps
  /** Inboxes by address. The commit checks again that the inbox still exists. */
  readonly #inboxes: KnownFor<string, AddressedInbox>

  constructor(deps: MailboxesDeps) {
    this.#deps = deps
    const { db, clock } = deps
    this.#inboxes = new KnownFor({
      name: 'find inboxes',
      clock,
      ms: knownMs,
      max: 50_000,
      load: async (addresses) => {
        const found = await findInboxesByAddress(db, addresses, clock.now())
        return new Map(found.map((inbox) => [inbox.address, inbox]))
      },
    })
  }

  /**
   * Asks the database again before it refuses from the cache, because a sender gives up at 550. Refusals are limited per
   * client network (`smtp/server/reputation.ts`), so a stranger who guesses addresses causes only as many queries. Ignores
   * results cached before `sinceMs`.
   */
  resolve(to: Path, sinceMs = Number.NEGATIVE_INFINITY): Promise<Target> {
    const find = (againMs: number) => this.#find(to, Math.max(sinceMs, againMs))
    return recheckRefusal(this.#deps.clock, find, (target) => 'refusal' in target)
  }

  async #find({ localPart, domain }: Path, sinceMs: number): Promise<Target> {
    const { secretBox, clock } = this.#deps
    const name = localPart.toLowerCase().replace(/\+.*$/s, '')
    const receiving = await this.#findDomain(domain, sinceMs)
    if (!receiving) return { refusal: relayDenied }
    // RFC 5321 4.5.1: postmaster exists at every domain that receives mail here, and at the host itself.
    if (name === 'postmaster' || name === 'abuse') return { kept: 'operator', submissionId: null }
    // RFC 8460 3: the TLSRPT record of every receiving domain names this address for its reports.
    if (domain === this.#deps.hostname && isTlsReports(name)) return { kept: 'operator', submissionId: null }
    if (name === 'fbl') return { kept: 'feedback', submissionId: null }
    if (name.startsWith('bounce-')) {
      const token = readReturnPath(secretBox, name, domain, clock.now())
      return token ? { kept: 'return_path', submissionId: token.submissionId } : { refusal: unknownMailbox }
    }
    if (receiving.takes === 'reports' || !/^[a-z0-9._-]{1,64}$/.test(name)) return { refusal: unknownMailbox }
    const inbox = await this.#inboxes.find(`${name}@${domain}`, sinceMs)
    // An inbox outlives the proof of its domain. Mail belongs to the domain's current owner, never to a former one.
    const isTheirs = receiving.organizationId === null || inbox?.organizationId === receiving.organizationId
    // The service's own inbox only sends, and is never read. Reports about its mail come to return paths.
    const isRead = inbox?.organizationId !== ownOrganizationId
    return inbox && isTheirs && isRead ? { inbox } : { refusal: unknownMailbox }
  }

  /**
   * Finds our domain, a customer's proved domain, the return-path host of a proved domain, or the mail host. Null: any
   * other.
   */
  async #findDomain(domain: string, sinceMs: number): Promise<ReceivingDomain | null> {
    const { isLocal, domains, hostname } = this.#deps
    if (isLocal(domain)) return { organizationId: null, takes: 'mail' }
    const proved = await domains.find(domain, sinceMs)
    if (proved) return { organizationId: proved.organizationId, takes: 'mail' }
    if (domain === hostname) return { organizationId: null, takes: 'reports' }
    const above = domainOfReturnPathHost(domain)
    const parent = above === null ? null : await domains.find(above, sinceMs)
    return parent && { organizationId: parent.organizationId, takes: 'reports' }
  }
}
