// Reads the contents of a record, type by type. Returns null if they are malformed.
import ipaddr from 'ipaddr.js'
import { readWireName } from './wire-name.ts'

/** A TLSA record: which certificate or key a server has (RFC 6698 2.1). Any number may be unknown. */
export interface TlsaRecord {
  usage: number
  selector: number
  matchingType: number
  /** In hexadecimal, lower case. */
  association: string
}

/** A range of bytes in a message. */
interface Span {
  start: number
  end: number
}

export function readIpv4(message: Buffer, { start, end }: Span): string | null {
  return end - start === 4 ? message.subarray(start, end).join('.') : null
}

/** The address as RFC 5952 writes it. */
export function readIpv6(message: Buffer, { start, end }: Span): string | null {
  return end - start === 16 ? new ipaddr.IPv6([...message.subarray(start, end)]).toString() : null
}

/** The name that fills the contents, in lower case, escaped, without a final dot. '' is the root. */
export function readHost(message: Buffer, { start, end }: Span): string | null {
  const read = readWireName(message, start)
  return read?.end === end ? read.name : null
}

export function readMx(
  message: Buffer,
  { start, end }: Span,
): { exchange: string; preference: number } | null {
  const exchange = end - start > 2 ? readHost(message, { start: start + 2, end }) : null
  return exchange === null ? null : { exchange, preference: message.readUInt16BE(start) }
}

export function readTlsa(message: Buffer, { start, end }: Span): TlsaRecord | null {
  if (end - start < 3) return null
  const [usage, selector, matchingType] = message.subarray(start) as unknown as [number, number, number]
  return { usage, selector, matchingType, association: message.toString('hex', start + 3, end) }
}

/** The joined strings of a TXT record, one character per byte (Latin-1). */
export function readText(message: Buffer, { start, end }: Span): string | null {
  const strings: Buffer[] = []
  for (let at = start; at < end; ) {
    const next = at + 1 + message[at]!
    if (next > end) return null
    strings.push(message.subarray(at + 1, next))
    at = next
  }
  // RFC 7208 3.3: the strings of a record are joined to one text, without spaces between them.
  return Buffer.concat(strings).toString('latin1')
}
