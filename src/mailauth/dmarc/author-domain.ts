// Reads the author's domain of a message, so strictly that no reader of mail can see another one.
import { isUtf8 } from 'node:buffer'
import { maxFromLength, readAuthor } from '../../mail/read/author.ts'
import { decodeEncodedWords } from '../../mail/read/encoded-word.ts'
import { bufferOver, type HeaderScan, scanHeader } from '../../mail/read/header-scan.ts'
import { toDnsName } from './dns-name.ts'
import { type FromField, possibleDomains, readFromField } from './from-field.ts'

/** The author domains of a message's From fields. */
export interface AuthorDomains {
  /**
   * In A-labels, each once, at most 3. A sound From field has one. Otherwise the domain of the address that this service
   * shows as the author comes first, then others that the field may mean.
   */
  domains: string[]
  /** Null if there is one From field, sound and of one domain. Otherwise words for people, and DMARC never passes. */
  fault: string | null
}

const maxDomains = 3
const maxFields = 3

/** The author domains of the header. Ignores the bytes after its empty line. Takes linear time for any bytes. */
export function readAuthorDomains(header: Uint8Array): AuthorDomains {
  const bytes = bufferOver(header)
  const scan = scanHeader(bytes)
  const values = scan.values('from').slice(0, maxFields)
  const fields = values.map((value) => readFromField(value.slice(0, maxFromLength)))
  const domains = [...new Set([...visibleDomains(scan), ...fields.flatMap(domainsOf)])]
  const block = bytes.subarray(0, scan.headerEnd)
  const fault = scan.isTruncated
    ? 'the header is too large to be read whole'
    : (faultOfCount(scan.count('from'), block) ??
      faultOfText(values[0]!) ??
      fields[0]!.fault ??
      faultOfBytes(fields[0]!, block) ??
      faultOfDomains(domains))
  return { domains: domains.slice(0, maxDomains), fault }
}

const maxDomainLength = 256

// Against fields that are no sound list but still show an address: <ceo @ bank . example>, or an address after three
// non-addresses. Names that read alike count alike: bank.example. is bank.example.
function visibleDomains(scan: HeaderScan): string[] {
  const author = readAuthor(scan)
  if (author === null) return []
  const written = author.email.slice(author.email.lastIndexOf('@') + 1)
  const name =
    written.length <= maxDomainLength ? written.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '') : written
  return [toDnsName(written) ?? toDnsName(name)].filter((domain) => domain !== null)
}

function domainsOf({ addresses }: FromField): string[] {
  return addresses.flatMap((address) => [
    ...possibleDomains(address),
    // Against readers that decode an address written as an encoded word.
    ...(address.includes('=?') ? possibleDomains(decodeEncodedWords(address)) : []),
  ])
}

function faultOfCount(count: number, block: Buffer): string | null {
  // RFC 9989 4.4: without a From field, or with several, no identifier aligns.
  if (count === 0) return 'there is no From field'
  if (count > 1) return 'there are several From fields'
  return countLookalikes(block) > 1 ? 'there are several fields that can be read as From' : null
}

// Against fields that only some readers take for From: `From\0:`, `\x01From :`, and a field after a bare CR.
const lookalike = /^(?![ \t])[^!-~\r\n]*f[^!-~\r\n]*r[^!-~\r\n]*o[^!-~\r\n]*m[^!-~\r\n]*:/gim

function countLookalikes(block: Buffer): number {
  return block.toString('latin1').match(lookalike)?.length ?? 0
}

function faultOfText(value: string): string | null {
  if (value.length > maxFromLength) return 'the From field is too long'
  // Against readers that end a text at NUL and show only the part before it.
  return /[\x00-\x08\x0a-\x1f\x7f]/.test(value) ? 'the From field has control characters' : null
}

function faultOfBytes({ addresses }: FromField, block: Buffer): string | null {
  // RFC 6532 3.2: beyond ASCII a field is UTF-8. Readers guess other encodings, each in its own way.
  const isGuessed = addresses.some((address) => /[^\x00-\x7f]/.test(address)) && !isUtf8(block)
  return isGuessed ? 'the address in From is not UTF-8' : null
}

function faultOfDomains(domains: readonly string[]): string | null {
  // RFC 9989 5.3.1: there must be exactly one domain, or there is nothing to validate.
  if (domains.length === 1) return null
  return domains.length === 0 ? 'From has no domain' : 'From names several domains'
}
