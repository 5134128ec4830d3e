// DNS messages: writes a question as bytes, and reads a reply from bytes that anybody may have sent.
import { randomInt } from 'node:crypto'
import { readWireName } from './wire-name.ts'

/** Numbers of the record types that we ask for, or that replies contain as well. */
export const typeNumbers = { A: 1, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, OPT: 41, TLSA: 52 }

export interface Question {
  /** A number of `typeNumbers`. */
  type: number
  /** As `writeName` returns it. */
  name: Buffer
}

/** A question as bytes, with its own random id. */
export interface Query {
  id: number
  bytes: Buffer
  /** The question section of `bytes`, which the reply must repeat. */
  question: Buffer
}

export interface RawRecord {
  /** In lower case, escaped. */
  name: string
  type: number
  ttlSeconds: number
  /** The span of its contents in the message. */
  start: number
  end: number
}

export interface DnsResponse {
  /** With the upper bits from EDNS. */
  rcode: number
  /** The message does not hold the whole answer. Its records are left out. */
  isTruncated: boolean
  /** The server is authoritative for the zone. */
  isAuthoritative: boolean
  /** The server offers recursion. */
  isRecursive: boolean
  /** The server reports that it checked the signatures. */
  isAuthenticated: boolean
  /** The server knows EDNS. */
  hasEdns: boolean
  answers: RawRecord[]
  authorities: RawRecord[]
  bytes: Buffer
}

const internet = 1
const headerBytes = 12
/** For all sections together: several times the number of any real answer. */
const maxRecords = 4096
/** Fits into one IPv6 packet everywhere. Larger answers come in fragments, which can be forged. */
const udpSizeBytes = 1232
const flags = { reply: 0x8000, opcode: 0x7800, aa: 0x0400, tc: 0x0200, rd: 0x0100, ra: 0x0080, ad: 0x0020 }
const rcodes = { NOERROR: 0, NXDOMAIN: 3 }

/** Writes a question with a random id. `edns: 'without'` is for servers that do not know EDNS. */
export function writeQuery({ type, name }: Question, edns: 'with' | 'without'): Query {
  const id = randomInt(0x10000)
  const question = Buffer.concat([name, words(type, internet)])
  const additional = edns === 'with' ? 1 : 0
  // RFC 6840 5.7: AD in a question requests the AD flag in the answer.
  const header = words(id, flags.rd | flags.ad, 1, 0, 0, additional)
  // RFC 6891 6.1.2: the root, the type, the accepted size over UDP, and neither flags nor options.
  const opt = Buffer.concat([Buffer.of(0), words(typeNumbers.OPT, udpSizeBytes, 0, 0, 0)])
  return { id, question, bytes: Buffer.concat([header, question, ...(additional ? [opt] : [])]) }
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, 2 * index)
  return bytes
}

/** The parsed reply. Null if the bytes are no reply to this query, or are malformed. */
export function readReply(bytes: Buffer, query: Query): DnsResponse | null {
  if (bytes.length < headerBytes || bytes.readUInt16BE(0) !== query.id) return null
  const bits = bytes.readUInt16BE(2)
  if (!(bits & flags.reply) || (bits & flags.opcode) !== 0) return null
  const start = readQuestion(bytes, bits & 0xf, query)
  if (start === null) return null
  const isTruncated = (bits & flags.tc) !== 0
  // A truncated message may end in the middle of a record.
  const sections = isTruncated ? [[], [], []] : readSections(bytes, start)
  if (!sections) return null
  const [answers, authorities, additionals] = sections as [RawRecord[], RawRecord[], RawRecord[]]
  const opt = additionals.find(({ type }) => type === typeNumbers.OPT)
  return {
    // RFC 6891 6.1.3: the upper eight bits of the code are the first byte of the TTL field.
    rcode: (bits & 0xf) | (opt ? (opt.ttlSeconds >>> 24) << 4 : 0),
    isTruncated,
    isAuthoritative: (bits & flags.aa) !== 0,
    isRecursive: (bits & flags.ra) !== 0,
    isAuthenticated: (bits & flags.ad) !== 0,
    hasEdns: opt !== undefined,
    answers,
    authorities,
    bytes,
  }
}

/**
 * The start of the records. Null if the reply repeats another question. Stops forged replies, whose sender must guess
 * the question, and late replies to another question.
 */
function readQuestion(bytes: Buffer, rcode: number, { question }: Query): number | null {
  const count = bytes.readUInt16BE(4)
  // QUIRK: servers that could not read a question return no part of it (RFC 1035 4.1.1 leaves this open).
  if (count === 0 && rcode !== rcodes.NOERROR && rcode !== rcodes.NXDOMAIN) return headerBytes
  const end = headerBytes + question.length
  if (count !== 1 || bytes.length < end) return null
  const name = question.length - 4
  const echoed = bytes.subarray(headerBytes, end)
  // RFC 1035 2.3.3: names are compared without regard to the case of their letters.
  const isSame =
    inLowerCase(echoed.subarray(0, name)).equals(inLowerCase(question.subarray(0, name))) &&
    echoed.subarray(name).equals(question.subarray(name))
  return isSame ? end : null
}

/** The length of a label is smaller than any letter's byte, so all bytes may be treated alike. */
function inLowerCase(name: Buffer): Buffer {
  return Buffer.from(name.map((byte) => (byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte)))
}

function readSections(bytes: Buffer, start: number): RawRecord[][] | null {
  const counts = [6, 8, 10].map((at) => bytes.readUInt16BE(at))
  if (counts.reduce((sum, count) => sum + count) > maxRecords) return null
  const sections: RawRecord[][] = []
  let at = start
  for (const count of counts) {
    const section: RawRecord[] = []
    for (let index = 0; index < count; index++) {
      const record = readRecord(bytes, at)
      if (!record) return null
      if (record.isOfInternet || record.type === typeNumbers.OPT) section.push(record)
      at = record.end
    }
    sections.push(section)
  }
  return sections
}

function readRecord(bytes: Buffer, at: number): (RawRecord & { isOfInternet: boolean }) | null {
  const named = readWireName(bytes, at)
  const start = named ? named.end + 10 : 0
  if (!named || start > bytes.length) return null
  const end = start + bytes.readUInt16BE(start - 2)
  if (end > bytes.length) return null
  return {
    name: named.name,
    type: bytes.readUInt16BE(named.end),
    isOfInternet: bytes.readUInt16BE(named.end + 2) === internet,
    ttlSeconds: bytes.readUInt32BE(named.end + 4),
    start,
    end,
  }
}
