// Cases that combine every signature state, return path and policy of the author's domain.
import type { ZoneRecords } from '../dns-server.ts'
import type { SigningPlan } from '../sign-mail.ts'
import {
  type CaseBook,
  dmarcZone,
  joinZones,
  keys,
  keyZone,
  rsaRecord,
  type Site,
  signed,
} from './case-book.ts'

const signers: Record<string, (site: Site) => string> = {
  own: ({ domain }) => domain,
  subdomain: ({ domain }) => `mail.${domain}`,
  stranger: ({ stranger }) => stranger,
}

interface State {
  /** The key's record in DNS. */
  record?: string | null
  plan?: Partial<SigningPlan>
  /** A change in transit. */
  change?: (mail: string) => string
}

const hourAgo = String(Math.floor(Date.now() / 1000) - 3600)
const dayAgo = String(Math.floor(Date.now() / 1000) - 86_400)

/** The states of a signature. */
export const states: Record<string, State> = {
  good: {},
  'broken body': { change: (mail) => mail.replace('parcel has', 'letter has') },
  'broken header': { change: (mail) => mail.replace('Subject: The ', 'Subject: Your ') },
  expired: { plan: { tags: { t: dayAgo, x: hourAgo } } },
  'no key': { record: null },
  'revoked key': { record: 'v=DKIM1; k=rsa; p=' },
  'rotated key': { record: rsaRecord(keys.other) },
}

const returnPaths: Record<string, (site: Site) => { from: string; zone: Record<string, ZoneRecords> }> = {
  own: ({ domain, ip }) => ({ from: `ann@${domain}`, zone: { [domain]: spf(ip) } }),
  subdomain: ({ domain, ip }) => ({ from: `b1@bounce.${domain}`, zone: { [`bounce.${domain}`]: spf(ip) } }),
  stranger: ({ stranger, ip }) => ({ from: `b1@${stranger}`, zone: { [stranger]: spf(ip) } }),
  forged: ({ domain }) => ({ from: `ann@${domain}`, zone: { [domain]: spf('192.0.2.7') } }),
}

function spf(ip: string): ZoneRecords {
  return { TXT: [`v=spf1 ip4:${ip} -all`] }
}

/** The record at the organization's domain, and whether the author writes from a subdomain. */
const policies: [record: string | null, from: 'domain' | 'subdomain'][] = [
  ['v=DMARC1; p=reject', 'domain'],
  ['v=DMARC1; p=reject; adkim=s; aspf=s', 'domain'],
  ['v=DMARC1; p=quarantine', 'domain'],
  ['v=DMARC1; p=none', 'domain'],
  ['v=DMARC1; p=reject; adkim=s', 'domain'],
  [null, 'domain'],
  ['v=DMARC1; p=reject; aspf=s', 'domain'],
  ['v=DMARC1; p=none; sp=reject', 'subdomain'],
  ['v=DMARC1; p=reject; sp=none; adkim=s', 'subdomain'],
]

/** Policies rotate, so that every signature and every return path meets several of them. */
export function addAlignment(book: CaseBook): void {
  const signatures: [string, string][] = Object.keys(signers).flatMap((signer) =>
    Object.keys(states).map((state): [string, string] => [signer, state]),
  )
  for (const [signer, state] of [...signatures, ['nobody', 'none'] as [string, string]])
    for (const returnPath of Object.keys(returnPaths)) {
      const policy = policies[book.cases.length % policies.length]!
      const words = `${policy[0] ?? 'no record'}, from the ${policy[1]}`
      book.add(`signed by ${signer}, ${state}; return path ${returnPath}; ${words}`, (site) =>
        planOf(site, { signer, state, returnPath, policy }),
      )
    }
}

function planOf(
  site: Site,
  chosen: { signer: string; state: string; returnPath: string; policy: (typeof policies)[number] },
) {
  const [record, from] = chosen.policy
  const path = returnPaths[chosen.returnPath]!(site)
  const author = from === 'domain' ? site.domain : `news.${site.domain}`
  const signer = signers[chosen.signer]?.(site)
  const { plan, change = (mail: string) => mail, record: key } = states[chosen.state] ?? {}
  const dmarc = record === null ? {} : dmarcZone(site.domain, record)
  return {
    from: path.from,
    author: `From: Ann <ann@${author}>\r\n`,
    zone: joinZones(path.zone, dmarc, signer ? keyZone(signer, key) : {}),
    write: (mail: string) => (signer ? change(signed(mail, signer, plan)) : mail),
  }
}
