// Mail from mailing lists that changed it: without ARC, and sealed by trusted and by untrusted servers.
import { sealMail } from '../seal-mail.ts'
import {
  type CaseBook,
  type CasePlan,
  dmarcZone,
  edRecord,
  joinZones,
  keys,
  keyZone,
  type Site,
  signed,
  signing,
} from './case-book.ts'

/** The trusted sealer. The other one is not trusted. */
export const trustedSealer = 'lists.example'
const otherSealer = 'mailer.example'

interface Seal {
  sealer: string
  /** The results that the sealer reports. */
  results: (site: Site) => string
  status?: string
  algorithm?: 'ed25519-sha256'
}

const sawPass = ({ domain }: Site) =>
  `mx.lists.example; dkim=pass header.d=${domain}; dmarc=pass header.from=${domain}`
const sawFail = ({ domain }: Site) =>
  `mx.lists.example; dkim=fail header.d=${domain}; dmarc=fail header.from=${domain}`
const sawDkim = ({ domain }: Site) => `mx.lists.example; dkim=pass header.d=${domain}`
const trusted: Seal = { sealer: trustedSealer, results: sawPass }
const other: Seal = { sealer: otherSealer, results: sawPass }

/** The seals of each case. In these first cases, a trusted sealer reports that the mail passed. */
const vouching: Record<string, Seal[]> = {
  'sealed by the trusted': [trusted],
  'sealed by the trusted with Ed25519': [{ ...trusted, algorithm: 'ed25519-sha256' }],
  'sealed by the trusted, who saw DKIM pass': [{ ...trusted, results: sawDkim }],
  'sealed by the trusted twice': [trusted, trusted],
}
const others: Record<string, Seal[]> = {
  'no ARC': [],
  'sealed by the untrusted': [other],
  'sealed by the trusted, who saw it fail': [{ ...trusted, results: sawFail }],
  'sealed by the trusted, then by the untrusted': [trusted, other],
  'sealed by the untrusted, then by the trusted': [other, { ...trusted, results: sawFail }],
  'sealed with cv=fail': [trusted, { ...trusted, status: 'fail' }],
}

/** Changes a mail as a mailing list does. */
function mangle(mail: string): string {
  return `${mail.replace('Subject: The', 'Subject: [list] The')}-- \r\nlist mailing list\r\n`
}

function seal(mail: string, seals: readonly Seal[], site: Site): string {
  return seals.reduce(
    (written, { sealer, results, status, algorithm }, index) =>
      sealMail(written, {
        ...signing(sealer),
        ...(algorithm && { algorithm, selector: 's2', privateKey: keys.ed25519.privateKey }),
        instance: index + 1,
        results: results(site),
        ...(status && { status }),
      }),
    mail,
  )
}

/** Changes in transit after the last seal. */
const later: Record<string, (mail: string) => string> = {
  'body changed after it': (mail) => `${mail}More.\r\n`,
  'subject changed after it': (mail) => mail.replace('[list]', '[other]'),
  'seal broken': (mail) => mail.replace(/(ARC-Seal: [^\r]*b=)..../, '$1AAAA'),
  'results changed': (mail) => mail.replace('dmarc=pass', 'dmarc=none'),
}

export function addLists(book: CaseBook): void {
  const plan = (site: Site, record: string, write: (mail: string) => string): CasePlan => ({
    zone: joinZones(keyZone(site.domain), dmarcZone(site.domain, record)),
    from: `list-bounces@${trustedSealer}`,
    write: (mail) => write(mangle(signed(mail, site.domain))),
  })
  for (const record of ['v=DMARC1; p=reject', 'v=DMARC1; p=quarantine'])
    for (const [name, seals] of Object.entries({ ...vouching, ...others }))
      book.add(`list, ${name}; ${record}`, (site) => ({
        ...plan(site, record, (mail) => seal(mail, seals, site)),
        isVouchedFor: name in vouching,
      }))
  for (const [name, change] of Object.entries(later))
    book.add(`list, ${name}`, (site) =>
      plan(site, 'v=DMARC1; p=reject', (mail) => change(seal(mail, [trusted], site))),
    )
  for (const sealer of [trustedSealer, otherSealer])
    book.publish(joinZones(keyZone(sealer), keyZone(sealer, edRecord(), 's2')))
}
