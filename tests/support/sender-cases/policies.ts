// Policies of the author's domain at several names, malformed or unavailable, and unusual authors.
import type { ZoneRecords } from '../dns-server.ts'
import {
  type CaseBook,
  type CasePlan,
  dmarcZone,
  joinZones,
  keyZone,
  type Site,
  signed,
} from './case-book.ts'

type Zone = Record<string, ZoneRecords>

interface Policy {
  /** The DMARC records in DNS. */
  zone: Zone
  /** From, if it is not the domain's own. */
  author?: string
  failing?: string[]
  fields?: string
}

const at = dmarcZone
const p = (tags: string) => `v=DMARC1; ${tags}`

/** Cases without a passing signature or SPF. */
const table: Record<string, (site: Site) => Policy> = {
  'no record at all': () => ({ zone: {} }),
  'p=REJECT in capitals, with spaces': ({ domain }) => ({ zone: at(domain, 'v=DMARC1 ;  P = REJECT ; ') }),
  'unknown tags': ({ domain }) => ({ zone: at(domain, p('zz=1; p=reject; ruf=x')) }),
  'v= is not the first': ({ domain }) => ({ zone: at(domain, 'p=reject; v=DMARC1') }),
  'v=dmarc1': ({ domain }) => ({ zone: at(domain, 'v=dmarc1; p=reject') }),
  'two records': ({ domain }) => ({ zone: at(domain, p('p=reject'), p('p=none')) }),
  'another text beside it': ({ domain }) => ({ zone: at(domain, 'other', p('p=reject')) }),
  'an unknown policy, without rua': ({ domain }) => ({ zone: at(domain, p('p=refuse')) }),
  'an unknown policy, with rua': ({ domain }) => ({
    zone: at(domain, p(`p=refuse; rua=mailto:a@${domain}`)),
  }),
  'no policy, with rua': ({ domain }) => ({ zone: at(domain, p(`rua=mailto:a@${domain}`)) }),
  'pct=0': ({ domain }) => ({ zone: at(domain, p('p=reject; pct=0')) }),
  't=y': ({ domain }) => ({ zone: at(domain, p('p=reject; t=y')) }),
  'a subdomain under p': ({ domain }) => below('news', domain, { zone: at(domain, p('p=reject')) }),
  'a subdomain under sp=none': ({ domain }) =>
    below('news', domain, { zone: at(domain, p('p=reject; sp=none')) }),
  'a subdomain under sp=quarantine': ({ domain }) =>
    below('news', domain, { zone: at(domain, p('p=none; sp=quarantine')) }),
  'a subdomain with a record of its own': ({ domain }) =>
    below('news', domain, { zone: joinZones(at(domain, p('p=reject')), at(`news.${domain}`, p('p=none'))) }),
  'a subdomain of a subdomain': ({ domain }) =>
    below('a.b', domain, { zone: joinZones(at(domain, p('p=none; sp=reject'))) }),
  'a subdomain that does not exist, under np': ({ domain }) =>
    below('gone', domain, { zone: at(domain, p('p=none; np=reject')) }),
  'a subdomain that exists, beside np': ({ domain, ip }) =>
    below('news', domain, {
      zone: joinZones(at(domain, p('p=reject; sp=none; np=reject')), { [`news.${domain}`]: { A: [ip] } }),
    }),
  'sp on the organization itself': ({ domain }) => ({ zone: at(domain, p('p=reject; sp=none')) }),
  'DNS does not answer for the record': ({ domain }) => ({ zone: {}, failing: [`_dmarc.${domain}`] }),
  'two authors of one domain': ({ domain }) => ({
    zone: at(domain, p('p=reject')),
    author: `From: ann@${domain}, bea@${domain}\r\n`,
  }),
  'two authors of two domains': ({ domain, stranger }) => ({
    zone: joinZones(at(domain, p('p=reject')), at(stranger, p('p=none'))),
    author: `From: ann@${domain}, bea@${stranger}\r\n`,
  }),
  'two From fields': ({ domain, stranger }) => ({
    zone: joinZones(at(domain, p('p=reject')), at(stranger, p('p=none'))),
    author: `From: ann@${domain}\r\nFrom: bea@${stranger}\r\n`,
  }),
  'no From': ({ domain }) => ({ zone: at(domain, p('p=reject')), author: '' }),
  'an empty From': ({ domain }) => ({ zone: at(domain, p('p=reject')), author: 'From: \r\n' }),
  'a group without members': ({ domain }) => ({
    zone: at(domain, p('p=reject')),
    author: 'From: Nobody:;\r\n',
  }),
  'an address in the display name': ({ domain, stranger }) => ({
    zone: joinZones(at(domain, p('p=reject')), at(stranger, p('p=none'))),
    author: `From: "boss@${stranger}" <ann@${domain}>\r\n`,
  }),
  'comments in the address': ({ domain }) => ({
    zone: at(domain, p('p=reject')),
    author: `From: Ann (of (c1.example)) <ann@ (home) ${domain}>\r\n`,
  }),
  'a quoted local part': ({ domain, stranger }) => ({
    zone: joinZones(at(domain, p('p=reject')), at(stranger, p('p=none'))),
    author: `From: "x@${stranger}"@${domain}\r\n`,
  }),
  'capitals in the domain': ({ domain }) => ({
    zone: at(domain, p('p=reject')),
    author: `From: ann@${domain.toUpperCase()}\r\n`,
  }),
}

function below(label: string, domain: string, policy: Policy): Policy {
  return { ...policy, author: `From: Ann <ann@${label}.${domain}>\r\n` }
}

/** Adds each case twice: without any authentication, and with a signature of the organization's domain. */
export function addPolicies(book: CaseBook): void {
  for (const [name, write] of Object.entries(table)) {
    const plan = (site: Site): CasePlan => {
      const { zone, ...others } = write(site)
      return { ...others, zone: joinZones(zone, keyZone(site.domain)), from: `b1@${site.stranger}` }
    }
    book.add(`DMARC: ${name}; unsigned`, plan)
    book.add(`DMARC: ${name}; signed`, (site) => ({
      ...plan(site),
      write: (mail) => signed(mail, site.domain),
    }))
  }
}
