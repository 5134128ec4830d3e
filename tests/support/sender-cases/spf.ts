// SPF by each of its mechanisms and modifiers, its limits and its errors. The mails carry no signature.
import type { ZoneRecords } from '../dns-server.ts'
import { type CaseBook, type CasePlan, dmarcZone, type Site } from './case-book.ts'

type Names = Record<string, ZoneRecords>
type Write = (site: Site) => { record?: string | string[]; names?: Names } & Omit<CasePlan, 'zone'>

/** The mail of a site whose domain has this record. */
function record(write: Write) {
  return (site: Site): CasePlan => {
    const { record: text, names = {}, ...plan } = write(site)
    const own = names[site.domain] ?? {}
    const TXT = text === undefined ? [] : [text].flat()
    const zone = { ...names, [site.domain]: { ...own, TXT }, ...dmarcZone(site.domain, 'v=DMARC1; p=none') }
    return { ...plan, zone }
  }
}

const reversed = (ip: string) => ip.split('.').reverse().join('.')
const txt = (text: string): ZoneRecords => ({ TXT: [text] })

const plain: Record<string, (site: Site) => string | string[]> = {
  'ip4 that matches': ({ ip }) => `v=spf1 ip4:${ip} -all`,
  'ip4 that does not': () => 'v=spf1 ip4:192.0.2.1 -all',
  'ip4 of a network': ({ ip }) => `v=spf1 ip4:${ip}/24 -all`,
  'ip4 of another network': ({ ip }) => `v=spf1 ip4:${ip.replace(/10$/, '128')}/25 -all`,
  'ip4 with a prefix of 33': ({ ip }) => `v=spf1 ip4:${ip}/33 -all`,
  'ip4 that is no address': () => 'v=spf1 ip4:1.2.3 -all',
  'ip6 for a client of IPv4': () => 'v=spf1 ip6:2001:db8::/32 -all',
  '+all': () => 'v=spf1 +all',
  '~all': () => 'v=spf1 ~all',
  '?all': () => 'v=spf1 ?all',
  '-all': () => 'v=spf1 -all',
  'nothing that matches': () => 'v=spf1 ip4:192.0.2.1',
  'an empty record': () => 'v=spf1',
  'capitals and spaces': ({ ip }) => `V=SPF1  IP4:${ip}   -ALL `,
  'another version': () => 'v=spf10 -all',
  'another text beside it': ({ ip }) => ['other=1', `v=spf1 ip4:${ip} -all`],
  'two records': ({ ip }) => [`v=spf1 ip4:${ip} -all`, 'v=spf1 -all'],
  'an unknown mechanism': ({ ip }) => `v=spf1 ip4:${ip} new:x -all`,
  'an unknown modifier': ({ ip }) => `v=spf1 new=x ip4:${ip} -all`,
  'redirect twice': ({ stranger }) => `v=spf1 redirect=${stranger} redirect=${stranger}`,
  'redirect to nothing': ({ stranger }) => `v=spf1 redirect=${stranger}`,
  'include of nothing': ({ stranger }) => `v=spf1 include:${stranger} -all`,
  'include of itself': ({ domain }) => `v=spf1 include:${domain} -all`,
  'redirect to itself': ({ domain }) => `v=spf1 redirect=${domain}`,
  'two terms for which DNS has nothing': ({ stranger, ip }) =>
    `v=spf1 a:a.${stranger} a:b.${stranger} ip4:${ip} -all`,
  'three terms for which DNS has nothing': ({ stranger, ip }) =>
    `v=spf1 a:a.${stranger} a:b.${stranger} a:c.${stranger} ip4:${ip} -all`,
  'exists that does not': ({ stranger }) => `v=spf1 exists:no.${stranger} -all`,
  'a macro that is none': () => 'v=spf1 exists:%{z}.c.example -all',
}

const withNames: Record<string, Write> = {
  'a that matches': ({ domain, ip }) => ({
    record: 'v=spf1 a -all',
    names: { [domain]: { A: ['192.0.2.1', ip] } },
  }),
  'a that does not': ({ domain }) => ({ record: 'v=spf1 a -all', names: { [domain]: { A: ['192.0.2.1'] } } }),
  'a of a host': ({ helo }) => ({ record: `v=spf1 a:${helo} -all` }),
  'a of a host’s network': ({ stranger, ip }) => ({
    record: `v=spf1 a:${stranger}/24 -all`,
    names: { [stranger]: { A: [ip.replace(/10$/, '200')] } },
  }),
  'a behind an alias': ({ domain, helo }) => ({
    record: `v=spf1 a:www.${domain} -all`,
    names: { [`www.${domain}`]: { CNAME: helo } },
  }),
  'mx that matches': ({ domain, helo }) => ({
    record: 'v=spf1 mx -all',
    names: { [domain]: { MX: [[10, helo]] } },
  }),
  'mx that does not': ({ domain, stranger }) => ({
    record: 'v=spf1 mx -all',
    names: { [domain]: { MX: [[10, stranger]] }, [stranger]: { A: ['192.0.2.1'] } },
  }),
  'mx of another domain': ({ stranger, helo }) => ({
    record: `v=spf1 mx:${stranger} -all`,
    names: { [stranger]: { MX: [[10, helo]] } },
  }),
  'mx with eleven hosts': ({ domain }) => ({
    record: 'v=spf1 mx -all',
    names: {
      [domain]: { MX: Array.from({ length: 11 }, (_, i): [number, string] => [i, `h${i}.${domain}`]) },
      ...Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`h${i}.${domain}`, { A: ['192.0.2.1'] }])),
    },
  }),
  'include of a pass': ({ stranger, ip }) => ({
    record: `v=spf1 include:${stranger} -all`,
    names: { [stranger]: txt(`v=spf1 ip4:${ip} -all`) },
  }),
  'include of a fail': ({ stranger }) => ({
    record: `v=spf1 include:${stranger} ~all`,
    names: { [stranger]: txt('v=spf1 -all') },
  }),
  'include of a softfail, then a match': ({ stranger, ip }) => ({
    record: `v=spf1 include:${stranger} ip4:${ip} -all`,
    names: { [stranger]: txt('v=spf1 ~all') },
  }),
  '?include of a pass': ({ stranger, ip }) => ({
    record: `v=spf1 ?include:${stranger} -all`,
    names: { [stranger]: txt(`v=spf1 ip4:${ip} -all`) },
  }),
  'include of an error': ({ stranger }) => ({
    record: `v=spf1 include:${stranger} -all`,
    names: { [stranger]: txt('v=spf1 ip4:x -all') },
  }),
  'include of an include': ({ stranger, ip }) => ({
    record: `v=spf1 include:${stranger} -all`,
    names: {
      [stranger]: txt(`v=spf1 include:b.${stranger} -all`),
      [`b.${stranger}`]: txt(`v=spf1 ip4:${ip} -all`),
    },
  }),
  'redirect to a pass': ({ stranger, ip }) => ({
    record: `v=spf1 redirect=${stranger}`,
    names: { [stranger]: txt(`v=spf1 ip4:${ip} -all`) },
  }),
  'redirect to a softfail': ({ stranger }) => ({
    record: `v=spf1 redirect=${stranger}`,
    names: { [stranger]: txt('v=spf1 ~all') },
  }),
  'redirect beside all': ({ stranger, ip }) => ({
    record: `v=spf1 redirect=${stranger} ?all`,
    names: { [stranger]: txt(`v=spf1 ip4:${ip} -all`) },
  }),
  'exists that does': ({ stranger }) => ({
    record: `v=spf1 exists:${stranger} -all`,
    names: { [stranger]: { A: ['127.0.0.2'] } },
  }),
  'exists by the client’s address': ({ stranger, ip }) => ({
    record: `v=spf1 exists:%{ir}.%{v}._spf.${stranger} -all`,
    names: { [`${reversed(ip)}.in-addr._spf.${stranger}`]: { A: ['127.0.0.2'] } },
  }),
  'exists by the sender': ({ domain, stranger }) => ({
    record: `v=spf1 exists:%{l1r-}.%{d2}.%{o}.${stranger} -all`,
    from: `Ann-news@${domain}`,
    names: { [`ann.${domain}.${domain}.${stranger}`]: { A: ['127.0.0.2'] } },
  }),
  'exists by HELO, with literal characters': ({ helo, stranger }) => ({
    record: `v=spf1 exists:%{h}.%{dr+}%%.${stranger} -all`,
    names: { [`${helo}.none.${stranger}`]: { A: ['127.0.0.2'] } },
  }),
  'ptr that matches': ({ domain, helo, ip }) => ({
    record: 'v=spf1 ptr -all',
    names: { [`${reversed(ip)}.in-addr.arpa`]: { PTR: [helo] }, [`www.${domain}`]: { A: [ip] } },
  }),
  'ptr of another domain': ({ stranger, ip }) => ({
    record: `v=spf1 ptr:${stranger} -all`,
    names: { [`${reversed(ip)}.in-addr.arpa`]: { PTR: [`h.${stranger}`] }, [`h.${stranger}`]: { A: [ip] } },
  }),
  'ptr that its name denies': ({ domain, ip }) => ({
    record: 'v=spf1 ptr -all',
    names: {
      [`${reversed(ip)}.in-addr.arpa`]: { PTR: [`www.${domain}`] },
      [`www.${domain}`]: { A: ['192.0.2.1'] },
    },
  }),
  'ptr without a name': () => ({ record: 'v=spf1 ptr -all' }),
  'ten terms that ask DNS': ({ domain, ip }) => ({
    record: `v=spf1 ${Array.from({ length: 10 }, (_, i) => `a:t${i}.${domain}`).join(' ')} ip4:${ip} -all`,
    names: Object.fromEntries(
      Array.from({ length: 10 }, (_, i) => [`t${i}.${domain}`, { A: ['192.0.2.1'] }]),
    ),
  }),
  'eleven terms that ask DNS': ({ domain, ip }) => ({
    record: `v=spf1 ${Array.from({ length: 11 }, (_, i) => `a:t${i}.${domain}`).join(' ')} ip4:${ip} -all`,
    names: Object.fromEntries(
      Array.from({ length: 11 }, (_, i) => [`t${i}.${domain}`, { A: ['192.0.2.1'] }]),
    ),
  }),
  'exp= of a fail': ({ domain }) => ({
    record: `v=spf1 -all exp=why.${domain}`,
    names: { [`why.${domain}`]: txt('%{i} may not send for %{d}') },
  }),
  'a long record, in strings': ({ ip, domain }) => ({
    record: `v=spf1 ${Array.from({ length: 60 }, (_, i) => `ip4:192.0.2.${i}`).join(' ')} ip4:${ip} exp=e.${domain} -all`,
  }),
  'DNS does not answer for the record': ({ domain }) => ({ failing: [domain] }),
  'DNS does not answer for an include': ({ stranger }) => ({
    record: `v=spf1 include:${stranger} +all`,
    failing: [stranger],
  }),
  'DNS does not answer behind a match': ({ stranger, ip }) => ({
    record: `v=spf1 ip4:${ip} a:${stranger} -all`,
    failing: [stranger],
  }),
  'ip6 that matches': ({ ip6 }) => ({ record: `v=spf1 ip6:${ip6} -all`, ip: ip6 }),
  'ip6 of a network': ({ ip6 }) => ({ record: 'v=spf1 ip6:2001:db8::/32 -all', ip: ip6 }),
  'ip6 that does not': ({ ip6 }) => ({ record: 'v=spf1 ip6:2001:db9::/32 -all', ip: ip6 }),
  'ip4 for a client of IPv6': ({ ip, ip6 }) => ({ record: `v=spf1 ip4:${ip} -all`, ip: ip6 }),
  'a with AAAA': ({ helo, ip6 }) => ({ record: `v=spf1 a:${helo}/32//64 -all`, ip: ip6 }),
  'null return path, HELO that passes': ({ helo, ip }) => ({
    from: '',
    names: { [helo]: { TXT: [`v=spf1 ip4:${ip} -all`], A: [ip] } },
  }),
  'null return path, HELO that fails': ({ helo, ip }) => ({
    from: '',
    names: { [helo]: { TXT: ['v=spf1 -all'], A: [ip] } },
  }),
  'null return path, HELO without a record': () => ({ from: '' }),
  'null return path, HELO that is an address': ({ ip }) => ({ from: '', helo: `[${ip}]` }),
  'a domain that does not exist': ({ stranger }) => ({ from: `ann@no.${stranger}` }),
  'a domain without a record': () => ({}),
}

export function addSpf(book: CaseBook): void {
  for (const [name, write] of Object.entries(plain))
    book.add(
      `SPF: ${name}`,
      record((site) => ({ record: write(site) })),
    )
  for (const [name, write] of Object.entries(withNames)) book.add(`SPF: ${name}`, record(write))
}
