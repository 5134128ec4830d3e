// The record by which a domain asks for reports about TLS (RFC 8460 3): the addresses and URLs that get them.
import { parseEmail } from '../../mail/address.ts'

/** The receiver of a report: a mailbox, or a URL that takes it by POST. */
export type Destination = { email: string } | { url: string }

const maxRecordLength = 4096
const maxDestinations = 4
const version = /^v=TLSRPTv1[ \t]*;/

/** The name of the record. */
export function tlsReportName(domain: string): string {
  return `_smtp._tls.${domain}`
}

/** Returns the destinations in the texts of all records at the name, each once and at most 4. Ignores other schemes. */
export function readTlsReportRecord(texts: readonly string[]): Destination[] {
  // RFC 8460 3: records of another version are discarded, and then there must be exactly one.
  const [text, other] = texts.filter((one) => version.test(one))
  if (text === undefined || other !== undefined || text.length > maxRecordLength) return []
  const fields = text.split(';').map((field) => field.trim())
  const rua = fields.find((field) => field.startsWith('rua='))?.slice('rua='.length) ?? ''
  const found = new Map<string, Destination>()
  // RFC 8460 3: a comma within a URI is encoded.
  for (const uri of rua.split(',')) {
    const destination = readUri(uri.trim())
    if (destination && found.size < maxDestinations) found.set(JSON.stringify(destination), destination)
  }
  return [...found.values()]
}

function readUri(uri: string): Destination | null {
  if (/^https:\/\/[\x21-\x7e]+$/i.test(uri) && URL.canParse(uri)) return { url: uri }
  const [, encoded] = /^mailto:([^?]*)/i.exec(uri) ?? []
  const address = encoded === undefined ? null : parseEmail(decodePercents(encoded))
  return address && { email: address.email }
}

function decodePercents(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    return '' // A % that encodes no character: this is no address.
  }
}
