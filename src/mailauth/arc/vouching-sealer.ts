// Decides whether trusted sealers, such as lists and forwarders, vouch for a mail that DMARC alone would refuse.
import type { AuthResults, ReportedResult } from '../parse-auth-results.ts'
import type { ArcVerdict } from './validate-arc.ts'

/** The author's domain as DMARC found it. */
export interface AuthorDomain {
  /** A-labels, in lower case. */
  domain: string
  /** Whether a domain proved by SPF or DKIM aligns with the author's by the rules of DMARC. */
  isAligned(domain: string): boolean
}

export interface VouchingSealer {
  /** d= of its seal. */
  sealer: string
  instance: number
  /** The result that it reported, as `dmarc=pass`. */
  because: string
}

/**
 * The trusted sealer that saw the mail pass DMARC before a later hop changed it. Null if there is none.
 *
 * The chain must pass, and its newest message signature must cover From and the whole body. Every sealer from the newest
 * to the vouching one must be trusted: a later sealer could have put another mail under its seals. The sealer reports
 * dmarc=pass for this author. If it reports dmarc=none or no DMARC result, a pass of SPF or DKIM for a domain aligned
 * with the author's also counts.
 */
export function vouchingSealer(
  arc: ArcVerdict,
  trustedSealers: ReadonlySet<string>,
  author: AuthorDomain,
): VouchingSealer | null {
  if (arc.result !== 'pass' || !arc.coversFrom || !arc.coversBody) return null
  for (const [index, sealer] of arc.sealers.entries()) {
    // RFC 8617 9.4: anybody can seal, so a chain is worth only as much as the trust in its sealers.
    if (!trustedSealers.has(sealer)) return null
    const because = passOf(arc.authResults[index] ?? null, author)
    if (because !== null) return { sealer, instance: arc.sealers.length - index, because }
  }
  return null
}

function passOf(reported: AuthResults | null, author: AuthorDomain): string | null {
  const results = reported?.results ?? []
  const dmarc = results.filter(({ method }) => method === 'dmarc')
  if (dmarc.some(({ result }) => result !== 'none'))
    return dmarc.every((one) => isPassFor(one, author)) ? 'dmarc=pass' : null
  const aligned = results.find((one) => one.result === 'pass' && domainsOf(one).some(author.isAligned))
  return aligned === undefined ? null : `${aligned.method}=pass`
}

function isPassFor({ result, properties }: ReportedResult, { domain }: AuthorDomain): boolean {
  const from = properties.get('header.from')
  return result === 'pass' && (from === undefined || domainOf(from) === domain)
}

/** The domains that a method proved. Reads the properties of RFC 8601 2.7.1 and 2.7.2, and the old name smtp.mfrom. */
function domainsOf({ method, properties }: ReportedResult): string[] {
  const proved = { dkim: ['header.d', 'header.i'], spf: ['smtp.mailfrom', 'smtp.mfrom'] }[method] ?? []
  return proved.flatMap((name) => properties.get(name) ?? []).map(domainOf)
}

function domainOf(value: string): string {
  return value.slice(value.lastIndexOf('@') + 1).toLowerCase()
}
