// The published mails and, for some, another parser's result, compared field by field with ours.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..', process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata')

export interface PublishedMail {
  /** Its path below the published suites. */
  name: string
  /** As stored, mostly with LF line ends. */
  bytes: Buffer
  /** With every line end converted to CRLF. */
  crlf: Buffer
}

/** All mails of the suites `mime-*`, or an empty list if they are absent (an error in CI). */
export function publishedMails(): PublishedMail[] {
  const patterns = [
    'mime-cpython/msg_*.txt',
    'mime-mime4j/*.msg',
    'mime-postalsys/*.eml',
    'mime-stalwart/*/*.eml',
  ]
  const names = patterns.flatMap((pattern) => globSync(pattern, { cwd: root })).sort()
  if (names.length === 0 && process.env['CI']) throw new Error(`no published mails in ${root}`)
  return names.map((name) => {
    const bytes = readFileSync(join(root, name))
    const crlf = Buffer.from(bytes.toString('latin1').replace(/\r?\n/g, '\r\n'), 'latin1')
    return { name, bytes, crlf }
  })
}

/** The fields that both sides can return. Null: the oracle has nothing comparable. */
export interface Reading {
  subject: string
  from: string | null
  to: string[]
  text: string | null
  attachments: { filename: string | null; sizeBytes: number[] | null }[]
}

interface Part {
  headers: { name: unknown; value: unknown }[]
  body: Record<string, unknown> | string
}

interface Parsed {
  parts: Part[]
  text_body: number[]
  attachments: number[]
}

/** The oracle's reading of a mail of `mime-stalwart`, or null if it has none. */
export function oracleOf({ name }: PublishedMail): Reading | null {
  if (!name.startsWith('mime-stalwart/')) return null
  const parsed: Parsed = JSON.parse(readFileSync(join(root, name.replace(/\.eml$/, '.json')), 'utf8'))
  const top = parsed.parts[0]!
  const subject = field(top, 'subject')?.['Text']
  return {
    subject: typeof subject === 'string' ? subject : '',
    from: addresses(top, 'from')[0] ?? null,
    to: addresses(top, 'to'),
    text: textOf(parsed),
    attachments: parsed.attachments.map((index) => attachmentOf(parsed.parts[index]!)),
  }
}

function field(part: Part, name: string): Record<string, unknown> | undefined {
  const value = part.headers.findLast((header) => header.name === name)?.value
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}

function addresses(part: Part, name: string): string[] {
  const value = field(part, name)?.['Address'] as { List?: { address: string | null }[] } | undefined
  return (value?.List ?? []).flatMap(({ address }) => (address ? [address] : []))
}

/** The text parts in order. Null if one of them is HTML, which each side converts in its own way. */
function textOf({ parts, text_body }: Parsed): string | null {
  const bodies = text_body.map((index) => parts[index]!.body)
  if (bodies.some((body) => typeof body === 'object' && 'Html' in body)) return null
  return bodies.map((body) => (typeof body === 'object' ? (body['Text'] ?? '') : '')).join('\n')
}

function attachmentOf(part: Part): Reading['attachments'][number] {
  const named = (name: string, attribute: string) => {
    const type = field(part, name)?.['ContentType'] as
      | { attributes: { name: string; value: string }[] | null }
      | undefined
    return type?.attributes?.find((one) => one.name === attribute)?.value
  }
  const filename = named('content_disposition', 'filename') ?? named('content_type', 'name') ?? null
  return { filename, sizeBytes: sizesOf(part.body) }
}

/** The right sizes: the oracle saw LF, but a text that came by SMTP has CRLF. */
function sizesOf(body: Part['body']): number[] | null {
  if (typeof body !== 'object') return null
  const bytes = body['Binary'] ?? body['InlineBinary']
  if (Array.isArray(bytes)) {
    const lineFeeds = bytes.filter((byte) => byte === 10).length
    return [bytes.length, bytes.length + lineFeeds]
  }
  const text = body['Text'] ?? body['Html']
  if (typeof text !== 'string') return null
  const sizeBytes = Buffer.byteLength(text)
  const bare = text.split(/(?<!\r)\n/).length - 1
  return [sizeBytes, sizeBytes + bare]
}

export interface Comparison {
  field: string
  agrees: boolean
  ours: unknown
  theirs: unknown
}

interface Ours {
  subject: string
  from: string | null
  to: string[]
  text: string
  attachments: { filename: string; sizeBytes: number }[]
}

/** One comparison per field. Texts are compared without white space, which the two sides join differently. */
export function compare(ours: Ours, theirs: Reading): Comparison[] {
  const words = (text: string) => text.replace(/\s+/g, ' ').trim()
  const one = (field: string, mine: unknown, other: unknown): Comparison => ({
    field,
    agrees: JSON.stringify(mine) === JSON.stringify(other),
    ours: mine,
    theirs: other,
  })
  const compared = [
    one('subject', words(ours.subject), words(theirs.subject)),
    one('from', ours.from, theirs.from),
    one('to', ours.to, theirs.to),
    one('attachments', ours.attachments.length, theirs.attachments.length),
  ]
  if (theirs.text !== null) compared.push(one('text', words(ours.text), words(theirs.text)))
  for (const [index, { filename, sizeBytes }] of theirs.attachments.entries()) {
    const mine = ours.attachments[index]
    if (filename !== null) compared.push(one(`filename ${index + 1}`, mine?.filename, filename))
    if (sizeBytes === null) continue
    const agrees = mine !== undefined && sizeBytes.includes(mine.sizeBytes)
    compared.push({ field: `size ${index + 1}`, agrees, ours: mine?.sizeBytes, theirs: sizeBytes })
  }
  return compared
}
