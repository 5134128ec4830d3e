// A collection of generated mails: each with a client, an envelope, the message, and its DNS records.
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { ZoneRecords } from '../dns-server.ts'
import { type SigningPlan, signatureOf } from '../sign-mail.ts'

/** The case's own domain, address and network, which no other case uses. */
export interface Site {
  number: number
  /** `c17.example`. */
  domain: string
  /** `s17.example`, a domain of another owner. */
  stranger: string
  ip: string
  ip6: string
  /** Exists, with the client's address. */
  helo: string
}

export interface CasePlan {
  zone?: Record<string, ZoneRecords>
  /** Names for which DNS answers SERVFAIL. */
  failing?: string[]
  /** The value of From; more fields. */
  author?: string
  fields?: string
  body?: string
  /** MAIL FROM; empty for the null return path. */
  from?: string
  helo?: string
  ip?: string
  /** Signs, seals or changes the mail (Latin-1 with CRLF) before it is sent. */
  write?: (mail: string) => string
  /** A trusted sealer reports that the mail passed before it was changed. */
  isVouchedFor?: boolean
}

export interface SenderCase {
  name: string
  isVouchedFor: boolean
  messageId: string
  ip: string
  helo: string
  from: string
  raw: Buffer
}

/** Records by name, in lower case, and the names without an answer. */
export interface CaseZone {
  records: Record<string, ZoneRecords>
  failing: string[]
}

export class CaseBook {
  readonly cases: SenderCase[] = []
  readonly zone: CaseZone = { records: {}, failing: [] }

  /** Adds records to DNS. */
  publish(zone: Record<string, ZoneRecords>): void {
    this.zone.records = joinZones(this.zone.records, zone)
  }

  add(name: string, plan: (site: Site) => CasePlan): void {
    const site = siteOf(this.cases.length)
    const made = plan(site)
    const { ip = site.ip, helo = site.helo, from = `ann@${site.domain}` } = made
    const { write = (mail) => mail, isVouchedFor = false } = made
    const own = { [site.helo]: { A: [site.ip], AAAA: [site.ip6] } }
    this.publish({ ...own, ...made.zone })
    this.zone.failing.push(...(made.failing ?? []))
    const messageId = `<case-${site.number}@side.example>`
    const raw = Buffer.from(write(writeMail(site, messageId, made)), 'latin1')
    this.cases.push({ name, isVouchedFor, messageId, ip, helo, from, raw })
  }
}

function siteOf(number: number): Site {
  const [high, low] = [18 + (number >> 8), number & 255]
  return {
    number,
    domain: `c${number}.example`,
    stranger: `s${number}.example`,
    helo: `mx.c${number}.example`,
    ip: `198.${high}.${low}.10`,
    ip6: `2001:db8:${(number + 1).toString(16)}::10`,
  }
}

function writeMail({ domain }: Site, messageId: string, { author, fields = '', body }: CasePlan): string {
  const written = author ?? `From: Ann <ann@${domain}>\r\n`
  const text = body ?? 'Dear Bob,\r\n\r\nthe  parcel has come.\r\n\r\nAnn\r\n'
  return `${written}To: Bob <bob@inbox.test>\r\nSubject: The  parcel\r\n\tof today\r\nDate: ${new Date().toUTCString().replace('GMT', '+0000')}\r\nMessage-ID: ${messageId}\r\n${fields}\r\n${text}`
}

export interface KeyPair {
  publicKey: KeyObject
  privateKey: KeyObject
}

const rsa = (modulusLength: number): KeyPair => generateKeyPairSync('rsa', { modulusLength })

export const keys = {
  rsa: rsa(2048),
  /** A key other than the one that signed. */
  other: rsa(2048),
  rsa1024: rsa(1024),
  rsa768: rsa(768),
  ed25519: generateKeyPairSync('ed25519') as KeyPair,
}

/** A mail with a signature of `domain` in front, by key `s1`, unless the plan says otherwise. */
export function signed(mail: string, domain: string, plan: Partial<SigningPlan> = {}): string {
  return signatureOf(mail, { ...signing(domain), ...plan }) + mail
}

export function signing(domain: string): SigningPlan {
  return {
    domain,
    selector: 's1',
    algorithm: 'rsa-sha256',
    privateKey: keys.rsa.privateKey,
    header: 'relaxed',
    body: 'relaxed',
    names: 'from:to:subject:date:message-id',
  }
}

/** p= of a key. */
export function publicPart({ publicKey }: KeyPair): string {
  if (publicKey.asymmetricKeyType === 'rsa')
    return publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  return Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url').toString('base64')
}

/** The zone of a domain's key `s1`. `record` replaces the key's record; null removes it. */
export function keyZone(
  domain: string,
  record: string | string[] | null = rsaRecord(),
  selector = 's1',
): Record<string, ZoneRecords> {
  return { [`${selector}._domainkey.${domain}`]: record === null ? {} : { TXT: [record].flat() } }
}

export function rsaRecord(pair = keys.rsa): string {
  return `v=DKIM1; k=rsa; p=${publicPart(pair)}`
}

export function edRecord(): string {
  return `v=DKIM1; k=ed25519; p=${publicPart(keys.ed25519)}`
}

export function dmarcZone(domain: string, ...records: string[]): Record<string, ZoneRecords> {
  return { [`_dmarc.${domain}`]: { TXT: records } }
}

/** Joins zones. Records of two zones at one name are joined too. */
export function joinZones(...zones: Record<string, ZoneRecords>[]): Record<string, ZoneRecords> {
  const joined: Record<string, ZoneRecords> = {}
  for (const zone of zones)
    for (const [name, { TXT, ...others }] of Object.entries(zone)) {
      const key = name.toLowerCase()
      const known = joined[key] ?? {}
      const texts = [...(known.TXT ?? []), ...(TXT ?? [])]
      joined[key] = { ...known, ...others, ...(texts.length > 0 && { TXT: texts }) }
    }
  return joined
}
