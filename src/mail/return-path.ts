// Signed and expiring return paths, one for each delivery, so that a report can be trusted and a forged one cannot.

import type { SubmissionId } from '../base/ids.ts'
import type { SecretBox } from '../base/secret-box.ts'

const purpose = 'return-path'
const prefix = 'bounce-'
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'
const dayMs = 86_400_000
/** RFC 3464 reports may be late. This accepts them for more than a week after the last attempt. */
const lifetimeDays = 30
const macBytes = 10

export interface ReturnPathToken {
  submissionId: SubmissionId
  /** The recipient's position. */
  position: number
}

/** The whole address, `bounce-<48 base32 characters>@host`: 55 octets before the `@`. */
export function returnPathOf(secretBox: SecretBox, token: ReturnPathToken, host: string, at: Date): string {
  const body = Buffer.alloc(20)
  body.write(token.submissionId.replaceAll('-', ''), 0, 'hex')
  body.writeUInt16BE(token.position, 16)
  body.writeUInt16BE((Math.floor(at.getTime() / dayMs) + lifetimeDays) & 0xffff, 18)
  const mac = secretBox.digest(purpose, textOf(body, host), macBytes)
  return `${prefix}${toBase32(Buffer.concat([body, mac]))}@${host}`
}

/** The token in the local part of a return path, or null if it is forged, expired or for another host. */
export function readReturnPath(
  secretBox: SecretBox,
  localPart: string,
  host: string,
  at: Date,
): ReturnPathToken | null {
  const text = localPart.toLowerCase()
  if (!text.startsWith(prefix)) return null
  const bytes = fromBase32(text.slice(prefix.length))
  if (bytes?.length !== 20 + macBytes) return null
  const body = bytes.subarray(0, 20)
  if (!secretBox.isDigest(purpose, textOf(body, host), bytes.subarray(20))) return null
  if (body.readUInt16BE(18) < Math.floor(at.getTime() / dayMs)) return null
  const hex = body.toString('hex', 0, 16)
  const submissionId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') as SubmissionId
  return { submissionId, position: body.readUInt16BE(16) }
}

/** The signed text. */
function textOf(body: Buffer, host: string): string {
  return `${host}\n${body.toString('hex')}`
}

function toBase32(bytes: Buffer): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet[(value >> (bits - 5)) & 31]
    value &= 0xff
  }
  return text
}

function fromBase32(text: string): Buffer | null {
  if (text.length !== 48) return null
  const bytes: number[] = []
  let bits = 0
  let value = 0
  for (const character of text) {
    const digit = alphabet.indexOf(character)
    if (digit < 0) return null
    value = ((value << 5) | digit) & 0xfff
    bits += 5
    if (bits >= 8) bytes.push((value >> (bits -= 8)) & 0xff)
  }
  return Buffer.from(bytes)
}
