// Whether sealers that are trusted vouch for a mail that DMARC alone would refuse: a mailing list's, a forwarder's.
import type { AuthResults, MethodResult } from '../parse-auth-results.ts'
import type { ArcVerdict } from './validate-arc.ts'

/** The author's domain, as DMARC has it. */
export interface AuthorDomain {
  /** A-labels, in lower case. */
  domain: string
  /** Whether a domain that SPF or DKIM proved is the author's, by the rules of DMARC. */
  isAligned(domain: string): boolean
}

export interface VouchingSealer {
  /** d= of its seal. */
  sealer: string
  instance: number
  /** What it reported, as `dmarc=pass`. */
  because: string
}

/**
 * The trusted sealer that saw the mail pass DMARC before it was changed on the way; null where none did.
 *
 * The chain passes, its newest message signature covers From and the whole body, and every sealer from the newest one
 * back to the one that vouches is trusted: whoever sealed after it could have put another mail under its seals.
 * It reports dmarc=pass for this author; or, where it reports dmarc=none or nothing of DMARC, SPF or DKIM that passed
 * for a domain that is aligned with the author's.
 */
export function vouchingSealer(
  arc: ArcVerdict,
  trustedSealers: ReadonlySet<string>,
  author: AuthorDomain,
): VouchingSealer | null {
  if (arc.result !== 'pass' || !arc.coversFrom || !arc.coversBody) return null
  for (const [index, sealer] of arc.sealers.entries()) {
    // RFC 8617 9.4: anybody can seal: a chain is worth what its sealers are trusted with.
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

function isPassFor({ result, properties }: MethodResult, { domain }: AuthorDomain): boolean {
  const from = properties.get('header.from')
  return result === 'pass' && (from === undefined || domainOf(from) === domain)
}

/** The domains that a method proved, by the properties of RFC 8601 2.7.1 and 2.7.2, and the old name smtp.mfrom. */
function domainsOf({ method, properties }: MethodResult): string[] {
  const proved = { dkim: ['header.d', 'header.i'], spf: ['smtp.mailfrom', 'smtp.mfrom'] }[method] ?? []
  return proved.flatMap((name) => properties.get(name) ?? []).map(domainOf)
}

function domainOf(value: string): string {
  return value.slice(value.lastIndexOf('@') + 1).toLowerCase()
}
