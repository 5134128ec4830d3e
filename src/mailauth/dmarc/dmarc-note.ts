// The facts of an evaluated mail that its domain's aggregate report counts: they describe kinds of mail, not single mails.
import type { AuthResult } from '../../base/auth-result.ts'
import type { DmarcVerdict } from './evaluate.ts'
import type { Policy } from './record.ts'
import { readDestinations } from './report-destinations.ts'
import type { PublishedPolicy, ReportedMail } from './report-xml.ts'

/** One mail as its domain's report counts it. */
export interface DmarcNote {
  policyDomain: string
  policy: PublishedPolicy & { rua: readonly string[] }
  mail: ReportedMail
}

export interface DmarcEvidence {
  verdict: DmarcVerdict
  /** The client's address. */
  sourceIp: string
  /** The domain of MAIL FROM. Empty for the null path. */
  envelopeFrom: string
  spf: { domain: string; result: AuthResult } | null
  dkim: readonly { domain: string; selector: string; result: AuthResult }[]
  /** The policy that was applied: `none` if the mail was accepted as usual. */
  applied: Policy
}

const maxSignatures = 10
const maxNameLength = 255

/** The note of a mail. Null if its domain asks for no reports, or if DMARC came to no conclusion. */
export function dmarcNoteOf(evaluated: DmarcEvidence): DmarcNote | null {
  const { verdict, sourceIp, envelopeFrom, spf } = evaluated
  const { result, record, policyDomain, domain, alignedBy } = verdict
  if ((result !== 'pass' && result !== 'fail') || !record?.p || policyDomain === null) return null
  if (readDestinations(record.rua).length === 0) return null
  const { p, sp, np, adkim, aspf, isTesting, rua } = record
  return {
    policyDomain,
    policy: { p, sp, np, adkim, aspf, isTesting, rua },
    mail: {
      sourceIp,
      headerFrom: domain ?? '',
      envelopeFrom: shortened(envelopeFrom),
      alignedBy,
      disposition: dispositionOf(evaluated),
      override: overrideOf(evaluated),
      dkim: signatures(evaluated),
      spf: spf && { domain: shortened(spf.domain), result: spf.result },
    },
  }
}

function dispositionOf({ verdict, applied }: DmarcEvidence): ReportedMail['disposition'] {
  if (verdict.result === 'fail') return applied
  return verdict.policy === 'none' ? 'none' : 'pass'
}

function overrideOf({ verdict, applied }: DmarcEvidence): ReportedMail['override'] {
  if (verdict.result !== 'fail') return null
  // RFC 9990 3.1.1.9: the report gives a reason if the applied policy is not the record's.
  return applied === verdict.disposition ? verdict.override : 'local_policy'
}

/**
 * RFC 9990 3.1.3: signatures that passed for the author's domain, then for its organization's, then for any, then the
 * rest.
 */
function signatures({ dkim, verdict }: DmarcEvidence): ReportedMail['dkim'] {
  const organization = verdict.organizationalDomain
  const ordinal = ({ domain, result }: { domain: string; result: AuthResult }) => {
    if (result !== 'pass') return 3
    if (domain === verdict.domain) return 0
    return organization !== null && `.${domain}`.endsWith(`.${organization}`) ? 1 : 2
  }
  return dkim
    .toSorted((a, b) => ordinal(a) - ordinal(b))
    .slice(0, maxSignatures)
    .map(({ domain, selector, result }) => ({
      domain: shortened(domain),
      selector: shortened(selector),
      result,
    }))
}

/** The name as JSON and PostgreSQL can hold it: without NUL and lone surrogates. */
function shortened(name: string): string {
  return name.slice(0, maxNameLength).toWellFormed().replaceAll('\0', '\ufffd')
}
