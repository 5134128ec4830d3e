// Signatures of the author's domain without an SPF record: each form, each fault, each kind of key.
import type { Form, SigningPlan } from '../sign-mail.ts'
import {
  type CaseBook,
  type CasePlan,
  dmarcZone,
  edRecord,
  joinZones,
  keys,
  keyZone,
  publicPart,
  rsaRecord,
  type Site,
  signed,
} from './case-book.ts'

const forms: Form[] = ['simple', 'relaxed']
const now = Math.floor(Date.now() / 1000)
const in1h = String(now + 3_600)
const ed: Partial<SigningPlan> = { algorithm: 'ed25519-sha256', privateKey: keys.ed25519.privateKey }

interface Signature {
  plan?: Partial<SigningPlan>
  record?: string | string[] | null
  change?: (mail: string) => string
  body?: string
}

/** One signature by the author's domain. */
function one({ plan = {}, record, change = (mail) => mail, body }: Signature) {
  return ({ domain }: Site): CasePlan => ({
    zone: joinZones(keyZone(domain, record), dmarcZone(domain, 'v=DMARC1; p=reject')),
    ...(body !== undefined && { body }),
    write: (mail) => change(signed(mail, domain, plan)),
  })
}

const fold = (mail: string) =>
  mail.replace('Subject: The  parcel\r\n\tof today', 'SUBJECT:   The parcel of today')
const spaces = (mail: string) => mail.replace('the  parcel has come.', 'the parcel  has come. \t')
const emptyLines = (mail: string) => `${mail}\r\n\r\n`
const tagged = (tags: SigningPlan['tags'], plan: Partial<SigningPlan> = {}) => ({
  plan: { ...plan, tags: tags! },
})
const withKey = (record: string | string[], plan: Partial<SigningPlan> = {}) => ({ record, plan })
/** Removes a tag from a finished signature, or changes it. */
const edit = (from: RegExp, to: string) => (mail: string) => mail.replace(from, to)

const table: Record<string, Signature> = {
  'l= of the whole body': { plan: { lengthBytes: 42 } },
  'l= and more behind': { plan: { lengthBytes: 42 }, change: (mail) => `${mail}-- \r\na list\r\n` },
  'l= longer than the body': tagged({ l: '9999' }),
  'l=0': { plan: { lengthBytes: 0 } },
  'l= that is no number': tagged({ l: 'all' }),
  'x= in an hour': tagged({ t: String(now - 60), x: in1h }),
  'x= before t=': tagged({ t: in1h, x: String(now + 60) }),
  't= tomorrow': tagged({ t: String(now + 86_400) }),
  'v=2': tagged({ v: '2' }),
  'no v=': tagged({ v: null }),
  'q= of another way': tagged({ q: 'http' }),
  'q=dns/txt': tagged({ q: 'dns/txt' }),
  'an unknown tag': tagged({ zz: 'new' }),
  'no s=': tagged({ s: null }),
  'no d=': tagged({ d: null }),
  'no h=': tagged({ h: null }),
  'no bh=': tagged({ bh: null }),
  'a= twice': { change: edit(/v=1;/, 'v=1; a=rsa-sha256;') },
  'b= that is no base64': { change: edit(/ {2}b=[\s\S]*?(?=\r\n[A-Z])/, '  b=!!!!') },
  'b= empty': { change: edit(/ {2}b=[\s\S]*?(?=\r\n[A-Z])/, '  b=') },
  'From is not covered': { plan: { names: 'to:subject:date' } },
  'a name in h= that is not there': { plan: { names: 'from:to:subject:date:reply-to' } },
  'a second Subject, which h= forbids': {
    plan: { names: 'from:subject:subject:date' },
    change: (mail) => `Subject: Other\r\n${mail}`,
  },
  'a second Subject above, which h= does not cover': { change: (mail) => `Subject: Other\r\n${mail}` },
  'Reply-To added, which h= forbids': {
    plan: { names: 'from:subject:reply-to' },
    change: (mail) => mail.replace('Date:', 'Reply-To: eve@else.example\r\nDate:'),
  },
  'rsa-sha1': { plan: { algorithm: 'rsa-sha1' } },
  'a key that allows sha1 alone': withKey(`v=DKIM1; h=sha1; p=${publicPart(keys.rsa)}`),
  'a key that allows sha256': withKey(`v=DKIM1; h=sha256; p=${publicPart(keys.rsa)}`),
  'a key for another service': withKey(`v=DKIM1; s=tlsrpt; p=${publicPart(keys.rsa)}`),
  'a key for e-mail': withKey(`v=DKIM1; s=email; p=${publicPart(keys.rsa)}`),
  'a key under test': withKey(`v=DKIM1; t=y; p=${publicPart(keys.rsa)}`),
  'a key without v= and k=': withKey(`p=${publicPart(keys.rsa)}`),
  'a key of another version': withKey(`v=DKIM2; p=${publicPart(keys.rsa)}`),
  'a key of an unknown kind': withKey(`v=DKIM1; k=new; p=${publicPart(keys.rsa)}`),
  'an Ed25519 key for an RSA signature': withKey(edRecord()),
  'an RSA key for an Ed25519 signature': withKey(rsaRecord(), ed),
  'a key that is no base64': withKey('v=DKIM1; k=rsa; p=???'),
  'a key with spaces in it': withKey(
    `v=DKIM1 ; k = rsa ; p = ${publicPart(keys.rsa).replace(/.{60}/g, '$& ')}`,
  ),
  'a key of 1024 bits': withKey(rsaRecord(keys.rsa1024), { privateKey: keys.rsa1024.privateKey }),
  'a key of 768 bits': withKey(rsaRecord(keys.rsa768), { privateKey: keys.rsa768.privateKey }),
}

export function addSignatures(book: CaseBook): void {
  for (const header of forms)
    for (const body of forms) {
      const canonical = { header, body }
      book.add(`rsa-sha256 ${header}/${body}`, one({ plan: canonical }))
      book.add(`ed25519-sha256 ${header}/${body}`, one({ plan: { ...ed, ...canonical }, record: edRecord() }))
      for (const [change, changed] of Object.entries({ fold, spaces, emptyLines }))
        book.add(`${header}/${body}, then ${change}`, one({ plan: canonical, change: changed }))
      book.add(`${header}/${body}, an empty body`, one({ plan: canonical, body: '' }))
    }
  for (const [name, signature] of Object.entries(table)) book.add(name, one(signature))
  addIdentities(book)
  addSeveral(book)
}

function addIdentities(book: CaseBook): void {
  const identified = (user: (domain: string) => string, record?: string) => (site: Site) =>
    one({ plan: { tags: { i: user(site.domain) } }, ...(record && { record }) })(site)
  const strict = `v=DKIM1; t=s; p=${publicPart(keys.rsa)}`
  book.add(
    'i= below d=',
    identified((domain) => `ann@news.${domain}`),
  )
  book.add(
    'i= elsewhere',
    identified(() => 'ann@else.example'),
  )
  book.add(
    'i= below d=, which the key forbids',
    identified((domain) => `ann@news.${domain}`, strict),
  )
  book.add(
    'i= of d=, where the key forbids others',
    identified((domain) => `ann@${domain}`, strict),
  )
  book.add('DNS does not answer for the key', ({ domain }) => ({
    ...one({})({ domain } as Site),
    zone: dmarcZone(domain, 'v=DMARC1; p=reject'),
    failing: [`s1._domainkey.${domain}`],
  }))
}

/** Each is signed before the next, so that none covers another. */
function addSeveral(book: CaseBook): void {
  const both = ({ domain }: Site) =>
    joinZones(
      keyZone(domain),
      keyZone(domain, edRecord(), 's2'),
      keyZone(domain, rsaRecord(keys.other), 's3'),
      dmarcZone(domain, 'v=DMARC1; p=reject'),
    )
  const chains: Record<string, Partial<SigningPlan>[]> = {
    'rsa and ed25519': [{}, { ...ed, selector: 's2' }],
    'a good signature above one with another key': [{ selector: 's3' }, {}],
    'a signature with another key above a good one': [{}, { selector: 's3' }],
    'two that are both bad': [{ selector: 's3' }, { selector: 's4' }],
  }
  for (const [name, plans] of Object.entries(chains))
    book.add(name, (site) => ({
      zone: both(site),
      write: (mail) => plans.reduce((written, plan) => signed(written, site.domain, plan), mail),
    }))
}
