// The PROXY protocol, both versions: the header in which a load balancer names the peer behind it.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { writtenAddress } from '../../base/ip-address.ts'

/** The peer that a balancer names; `unknown` if the balancer names none, or speaks for itself. */
export type ProxiedPeer = { address: string; port: number } | 'unknown'

/** The start of the bytes: a header and its length, a part of a header, a malformed header, or something else. */
export type ProxyHeader = { peer: ProxiedPeer; sizeBytes: number } | 'part' | 'malformed' | 'none'

const line = Buffer.from('PROXY ')
const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
/** The longest line of version 1, its CRLF included. */
const maxLineBytes = 107
const fixedBytes = 16
/** Bytes after the addresses are skipped. Balancers need no more than this, and the wait must be bounded. */
const maxRestBytes = 4096

const local = 0x20
const proxied = 0x21
/** Address families, keyed by the byte for family and transport: unspecified, TCP over IPv4, TCP over IPv6. */
const families = new Map([
  [0x00, { addressBytes: 0, restBytes: 0 }],
  [0x11, { addressBytes: 4, restBytes: 12 }],
  [0x21, { addressBytes: 16, restBytes: 36 }],
])

/** Reads the header that `bytes` begin with. */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (begins(bytes, line)) return readLine(bytes)
  if (begins(bytes, signature)) return readBinary(bytes)
  return 'none'
}

/** Returns whether the bytes begin with `head`, or are the beginning of it. */
function begins(bytes: Buffer, head: Buffer): boolean {
  const length = Math.min(bytes.length, head.length)
  return length > 0 && bytes.subarray(0, length).equals(head.subarray(0, length))
}

function readLine(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, maxLineBytes).indexOf('\n')
  if (end < 0) return bytes.length < maxLineBytes ? 'part' : 'malformed'
  const text = bytes.toString('latin1', 0, end)
  const peer = text.endsWith('\r') ? parseLine(text.slice(0, -1)) : null
  return peer === null ? 'malformed' : { peer, sizeBytes: end + 1 }
}

/** Returns the peer named by a line without its CRLF; null if the line is malformed. */
function parseLine(text: string): ProxiedPeer | null {
  if (/^PROXY UNKNOWN(?: |$)/.test(text)) return 'unknown'
  const [, family, address = '', port] =
    /^PROXY TCP([46]) ([0-9A-Fa-f.:]+) \S+ (\d{1,5}) \d{1,5}$/.exec(text) ?? []
  if (isIP(address) !== Number(family) || Number(port) > 65_535) return null
  return { address: writtenAddress(address), port: Number(port) }
}

function readBinary(bytes: Buffer): ProxyHeader {
  if (bytes.length < fixedBytes) return 'part'
  const command = bytes[12]
  const restBytes = bytes.readUInt16BE(14)
  const family = families.get(bytes[13]!)
  if ((command !== local && command !== proxied) || restBytes > maxRestBytes) return 'malformed'
  if (command === proxied && (!family || restBytes < family.restBytes)) return 'malformed'
  const sizeBytes = fixedBytes + restBytes
  if (bytes.length < sizeBytes) return 'part'
  // A balancer's health check, or a balancer that does not know the peer.
  if (command === local || !family?.addressBytes) return { peer: 'unknown', sizeBytes }
  const portAt = fixedBytes + 2 * family.addressBytes
  const source = bytes.subarray(fixedBytes, fixedBytes + family.addressBytes)
  return { peer: { address: writeAddress(source), port: bytes.readUInt16BE(portAt) }, sizeBytes }
}

/** Writes the address as a socket would: IPv4-mapped addresses as IPv4. */
function writeAddress(bytes: Buffer): string {
  return ipaddr.process(ipaddr.fromByteArray([...bytes]).toString()).toString()
}
