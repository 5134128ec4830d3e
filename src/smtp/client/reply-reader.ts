// Reads SMTP replies from the bytes of a peer that may lie: bounded, sanitized, in linear time.
import type { Reply } from '../reply.ts'

const maxLineBytes = 4096
const maxLines = 100
const maxReplyBytes = 64 * 1024
const maxTextLength = 1000

/** One complete reply. `lines` has all of its text, sanitized, for EHLO. `reply.text` is cut to 1,000 characters. */
export interface PeerReply {
  reply: Reply
  lines: readonly string[]
}

/** Makes a peer's text safe to store and show: control characters become spaces, broken UTF-8 becomes `?`. */
export function sanitize(text: string, maxLength: number): string {
  return text
    .slice(0, maxLength)
    .replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g, ' ')
    .toWellFormed()
    .replaceAll('\ufffd', '?')
}

/** Turns bytes into replies. Reads nothing more once `garbled` is set. */
export class ReplyReader {
  #partial: Buffer | null = null
  #code = 0
  #lines: string[] = []
  #replyBytes = 0
  #garbled: string | null = null

  /** The error in the peer's bytes; null as long as they are SMTP. */
  get garbled(): string | null {
    return this.#garbled
  }

  /** True if the last bytes ended where a reply ended. */
  get isEmpty(): boolean {
    return this.#partial === null && this.#lines.length === 0
  }

  /** Reads the next bytes and returns the replies that they complete, in order. */
  push(chunk: Buffer): PeerReply[] {
    const replies: PeerReply[] = []
    // Bytes after garbage are dropped. Otherwise we would keep them all, and copy them with each new piece.
    if (this.#garbled !== null) return replies
    const bytes = this.#partial ? Buffer.concat([this.#partial, chunk]) : chunk
    let start = 0
    while (this.#garbled === null) {
      // QUIRK: a bare LF ends a reply line too. RFC 5321 2.3.8 asks for CRLF, but servers in embedded devices send LF.
      const end = bytes.indexOf(10, start)
      const lineBytes = (end < 0 ? bytes.length : end + 1) - start
      if (lineBytes > maxLineBytes) this.#garbled = `a reply line of more than ${maxLineBytes} octets`
      if (end < 0 || this.#garbled !== null) break
      const complete = this.#line(bytes.subarray(start, end))
      if (complete) replies.push(complete)
      start = end + 1
    }
    this.#partial = start < bytes.length ? bytes.subarray(start) : null
    return replies
  }

  #line(line: Buffer): PeerReply | null {
    const bytes = line.at(-1) === 13 ? line.subarray(0, -1) : line
    const code = replyCode(bytes)
    const separator = bytes[3]
    this.#replyBytes += line.length + 1
    if (code === 0) return this.#refuse(`not a reply: "${sanitize(bytes.toString('latin1'), 80)}"`)
    // RFC 5321 4.2.1: every line of a reply carries the same code, then a hyphen, or on the last line a space.
    if (this.#lines.length > 0 && code !== this.#code) return this.#refuse('a reply of several codes')
    if (separator !== undefined && separator !== 32 && separator !== 45)
      return this.#refuse('a reply code without a space')
    if (this.#lines.length >= maxLines || this.#replyBytes > maxReplyBytes)
      return this.#refuse('a reply without end')
    this.#code = code
    this.#lines.push(sanitize(bytes.toString('utf8', 4), maxLineBytes))
    return separator === 45 ? null : this.#finish()
  }

  #refuse(reason: string): null {
    this.#garbled = reason
    return null
  }

  #finish(): PeerReply {
    const lines = this.#lines
    this.#lines = []
    this.#replyBytes = 0
    const enhanced = enhancedStatus(this.#code, lines[0]!)
    // RFC 2034 4: the status code is on every line of the reply. We remove it from the text.
    const visible = enhanced === null ? lines : lines.map((line) => withoutStatus(line, enhanced))
    const text = visible.length === 1 ? visible[0]! : visible.join('\n')
    return { reply: { code: this.#code, enhanced, text: text.slice(0, maxTextLength).toWellFormed() }, lines }
  }
}

function replyCode(bytes: Buffer): number {
  let code = 0
  for (let index = 0; index < 3; index++) {
    const digit = (bytes[index] ?? 0) - 48
    if (digit < 0 || digit > 9) return 0
    code = code * 10 + digit
  }
  return code >= 200 && code <= 599 ? code : 0
}

function enhancedStatus(code: number, line: string): string | null {
  // RFC 3463 2: class, subject and detail; RFC 2034 4: its class is that of the reply code.
  const match = /^([245]\.\d{1,3}\.\d{1,3})(?: |$)/.exec(line)
  return match && Number(line[0]) === Math.floor(code / 100) ? match[1]! : null
}

function withoutStatus(line: string, enhanced: string): string {
  return line.startsWith(enhanced) ? line.slice(enhanced.length).trimStart() : line
}
