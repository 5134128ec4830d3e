// Judges addresses without sending mail: their syntax, DNS, lists, and the organization's own deliveries.
import { ServiceError } from '../../base/errors.ts'
import type { HopsInTime } from '../../dns/hops-in-time.ts'
import type { Hops } from '../../dns/mx.ts'
import { type EmailAddress, parseEmail, sameAddressKey } from '../../mail/address.ts'
import {
  type AddressLists,
  type ListChanges,
  loadAddressLists,
} from '../../mail/address-lists/address-lists.ts'
import type { Queryable } from '../../postgres/db.ts'
import { type AddressEvidence, findAddressEvidence } from '../../store/mailbox/address-evidence.ts'
import type { Caller } from '../caller.ts'

export type Verdict = 'deliverable' | 'risky' | 'undeliverable' | 'unknown'

/** The checks of an address: true, false, or null if unknown. */
export interface Checks {
  syntax: boolean
  /** The domain exists. */
  domain: boolean | null
  /** The domain has a reachable mail server. */
  mx: boolean | null
  /** The domain declares that it takes no mail. */
  nullMx: boolean | null
  disposable: boolean | null
  role: boolean | null
  freeProvider: boolean | null
  /** The organization's own deliveries reached the mailbox (true), or were told that it does not exist (false). */
  mailbox: boolean | null
}

export interface Findings extends Checks {
  isSuppressed: boolean
  hasSuggestion: boolean
}

export interface ValidationResult {
  email: string
  normalized: string | null
  verdict: Verdict
  reason: Reason
  checks: Checks
  suggestion: string | null
  mxHosts: string[]
}

/** In the order of their priority: the first rule that holds is the reason. */
const rules = [
  ['invalid_syntax', 'undeliverable', ({ syntax }) => !syntax],
  ['domain_not_found', 'undeliverable', ({ domain }) => domain === false],
  ['null_mx', 'undeliverable', ({ nullMx }) => nullMx === true],
  ['no_mail_server', 'undeliverable', ({ mx }) => mx === false],
  ['dns_error', 'unknown', ({ mx }) => mx === null],
  ['mailbox_not_found', 'undeliverable', ({ mailbox }) => mailbox === false],
  ['suppressed', 'undeliverable', ({ isSuppressed }) => isSuppressed],
  ['disposable', 'risky', ({ disposable }) => disposable === true],
  ['possible_typo', 'risky', ({ hasSuggestion }) => hasSuggestion],
  ['role_account', 'risky', ({ role }) => role === true],
  ['accepted', 'deliverable', () => true],
] as const satisfies [string, Verdict, (findings: Findings) => boolean][]

export type Reason = (typeof rules)[number][0]

export const reasons: readonly Reason[] = rules.map(([reason]) => reason)

/** The verdict on the findings, and the first reason for it. Pure. */
export function decide(findings: Findings): { verdict: Verdict; reason: Reason } {
  const [reason, verdict] = rules.find(([, , holds]) => holds(findings))!
  return { verdict, reason }
}

/** For all addresses of one call together. */
const deadlineMs = { one: 5_000, several: 1_500 }

interface Options {
  db: Queryable
  hopsInTime: HopsInTime
  listChanges: ListChanges
}

type Asker = Pick<Caller, 'organizationId' | 'inboxIds'>

export class Validation {
  readonly #options: Options
  #lists: Promise<AddressLists> | null = null

  constructor(options: Options) {
    this.#options = options
  }

  /**
   * Returns one result per address, in order. Domains without a DNS answer in time are `unknown`. Throws `rate_limited` for
   * the whole call if the organization has looked up too many domains.
   */
  async validate(caller: Asker, emails: string[]): Promise<ValidationResult[]> {
    const addresses = emails.map(parseEmail)
    const sound = addresses.filter((address) => address !== null)
    const domains = sound.map(({ domain }) => domain)
    const { organizationId } = caller
    const waitSeconds = await this.#options.hopsInTime.admit(organizationId, domains)
    if (waitSeconds !== null) throw new ServiceError('rate_limited', tooManyDomains, waitSeconds)
    const [lists, hops, evidence] = await Promise.all([
      (this.#lists ??= loadAddressLists(this.#options.listChanges)),
      this.#options.hopsInTime.find(
        organizationId,
        domains,
        deadlineMs[emails.length > 1 ? 'several' : 'one'],
      ),
      this.#findEvidence(caller, sound),
    ])
    return addresses.map((address, index) => {
      const email = emails[index]!
      if (address === null) return misspelt(email)
      return assess({ email, address, lists, hops: hops.get(address.domain)!, ...evidence.get(address)! })
    })
  }

  /** A key that is restricted to inboxes learns nothing about the organization's sent mail and suppressions. */
  async #findEvidence(
    { organizationId, inboxIds }: Asker,
    addresses: EmailAddress[],
  ): Promise<Map<EmailAddress, AddressEvidence>> {
    if (inboxIds) return new Map(addresses.map((address) => [address, noEvidence]))
    const keys = addresses.map(({ email }) => sameAddressKey(email))
    const evidence = await findAddressEvidence(this.#options.db, organizationId, keys)
    return new Map(addresses.map((address, index) => [address, evidence[index]!]))
  }
}

const tooManyDomains =
  'The organization has looked up too many domains within a minute. Retry after the seconds in retry-after.'
const noEvidence: AddressEvidence = { isSuppressed: false, mailbox: null }
const nothingKnown = { domain: null, mx: null, nullMx: null }

function misspelt(email: string): ValidationResult {
  const unasked = { disposable: null, role: null, freeProvider: null, mailbox: null }
  const checks: Checks = { syntax: false, ...nothingKnown, ...unasked }
  const verdict = decide({ ...checks, isSuppressed: false, hasSuggestion: false })
  return { email, normalized: null, ...verdict, checks, suggestion: null, mxHosts: [] }
}

interface Evidence extends AddressEvidence {
  email: string
  address: EmailAddress
  lists: AddressLists
  hops: Hops
}

function assess({ email, address, lists, hops, mailbox, isSuppressed }: Evidence): ValidationResult {
  const { localPart, domain } = address
  const checks: Checks = {
    syntax: true,
    ...checkDomain(hops),
    disposable: lists.isDisposable(domain),
    role: lists.isRole(localPart),
    freeProvider: lists.isFreeProvider(domain),
    mailbox,
  }
  const meant = lists.suggestDomain(domain)
  const suggestion = meant && `${address.email.slice(0, -domain.length)}${meant}`
  return {
    email,
    normalized: address.email,
    ...decide({ ...checks, isSuppressed, hasSuggestion: suggestion !== null }),
    checks,
    suggestion,
    mxHosts: hops.status === 'ok' ? hops.hosts.map(({ name }) => name) : [],
  }
}

function checkDomain(hops: Hops): Pick<Checks, 'domain' | 'mx' | 'nullMx'> {
  if (hops.status === 'ok') return { domain: true, mx: true, nullMx: false }
  if (hops.status === 'null_mx') return { domain: true, mx: false, nullMx: true }
  if (hops.status === 'no_address') return { domain: true, mx: false, nullMx: false }
  if (hops.status === 'domain_not_found') return { ...nothingKnown, domain: false }
  return nothingKnown
}
