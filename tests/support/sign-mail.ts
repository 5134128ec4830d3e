// A signer for tests that writes any DKIM-Signature, right or wrong: plain, slow code after RFC 6376, not the product's.
import { createHash, type KeyObject, sign } from 'node:crypto'

export type Form = 'simple' | 'relaxed'

export interface SigningPlan {
  domain: string
  selector: string
  algorithm: 'rsa-sha256' | 'ed25519-sha256' | 'rsa-sha1'
  privateKey: KeyObject
  header: Form
  body: Form
  /** h=, as written. */
  names: string
  /** Tags in front of those of the signer; null removes one of the signer's tags. */
  tags?: Record<string, string | null>
  /** l=: the number of signed bytes of the canonical body. */
  lengthBytes?: number
  /** The name of the field; ARC's is written without v=. */
  fieldName?: string
}

/** The field with its CRLF, for a mail of Latin-1 with CRLF line ends. */
export function signatureOf(mail: string, plan: SigningPlan): string {
  const [header = '', ...bodies] = mail.split('\r\n\r\n')
  const fields = header.split(/\r\n(?![ \t])/)
  const body = bodyForms[plan.body](bodies.join('\r\n\r\n'))
  const algorithm = plan.algorithm === 'rsa-sha1' ? 'sha1' : 'sha256'
  const signed = plan.lengthBytes === undefined ? body : body.slice(0, plan.lengthBytes)
  const tags: Record<string, string | null> = {
    ...plan.tags,
    v: '1',
    a: plan.algorithm,
    c: `${plan.header}/${plan.body}`,
    d: plan.domain,
    s: plan.selector,
    ...(plan.lengthBytes === undefined ? {} : { l: String(plan.lengthBytes) }),
    h: plan.names,
    bh: createHash(algorithm).update(signed, 'latin1').digest('base64'),
    ...plan.tags,
  }
  const written = Object.entries(tags).filter(([, value]) => value !== null)
  const list = written.map(([name, value]) => `${name}=${value}`).join(';\r\n\t')
  const field = `${plan.fieldName ?? 'DKIM-Signature'}: ${list};\r\n  b=`
  const bytes = Buffer.from(coveredHeader(fields, plan) + headerForms[plan.header](field), 'latin1')
  return `${field}${signBytes(bytes, plan)
    .replace(/.{1,60}/g, '$&\r\n\t')
    .trimEnd()}\r\n`
}

/** The mail with one signature in front for each plan. No signature covers another. */
export function signMail(mail: string, plans: readonly SigningPlan[]): Buffer {
  return Buffer.from(plans.map((plan) => signatureOf(mail, plan)).join('') + mail, 'latin1')
}

function signBytes(bytes: Buffer, { algorithm, privateKey }: SigningPlan): string {
  if (algorithm === 'ed25519-sha256')
    return sign(null, createHash('sha256').update(bytes).digest(), privateKey).toString('base64')
  return sign(algorithm === 'rsa-sha1' ? 'sha1' : 'sha256', bytes, privateKey).toString('base64')
}

function coveredHeader(fields: readonly string[], { names, header }: SigningPlan): string {
  const left = [...fields]
  let covered = ''
  for (const name of names.split(':').map((one) => one.trim().toLowerCase())) {
    const at = left.findLastIndex((field) => field.slice(0, field.indexOf(':')).trim().toLowerCase() === name)
    if (at >= 0) covered += `${headerForms[header](left.splice(at, 1)[0]!)}\r\n`
  }
  return covered
}

const headerForms: Record<Form, (field: string) => string> = {
  simple: (field) => field,
  relaxed: (field) => {
    const colon = field.indexOf(':')
    const value = field
      .slice(colon + 1)
      .split('\r\n')
      .join('')
      .split(/[ \t]+/)
      .join(' ')
    return `${field.slice(0, colon).trim().toLowerCase()}:${value.trim()}`
  },
}

/** The two canonical forms of a body, line by line. */
export const bodyForms: Record<Form, (body: string) => string> = {
  simple: (body) => `${withoutEmptyEnd(body.split('\r\n'))}\r\n`,
  relaxed: (body) => {
    const lines = body.split('\r\n').map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''))
    const kept = withoutEmptyEnd(lines)
    return kept === '' ? '' : `${kept}\r\n`
  },
}

function withoutEmptyEnd(lines: readonly string[]): string {
  return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1).join('\r\n')
}
