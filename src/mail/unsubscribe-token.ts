// Signed tokens of one-click links, one for each delivery, so that nobody can unsubscribe an address that is not theirs.
import type { SubmissionId } from '../base/ids.ts'
import type { SecretBox } from '../base/secret-box.ts'

export interface UnsubscribeToken {
  submissionId: SubmissionId
  /** The recipient's position. */
  position: number
}

/** The key outlives a change of the secret key. The signed text has another form than that of a return path. */
const purpose = 'return-path'
const bodyBytes = 18
const macBytes = 12

/** 40 characters of base64url. */
export function unsubscribeTokenOf(
  secretBox: SecretBox,
  { submissionId, position }: UnsubscribeToken,
): string {
  const body = Buffer.alloc(bodyBytes)
  body.write(submissionId.replaceAll('-', ''), 0, 'hex')
  body.writeUInt16BE(position, 16)
  return Buffer.concat([body, secretBox.digest(purpose, textOf(body), macBytes)]).toString('base64url')
}

/** Null if it is forged. It never expires, because mail may be read late. */
export function readUnsubscribeToken(secretBox: SecretBox, text: string): UnsubscribeToken | null {
  if (!/^[A-Za-z0-9_-]{40}$/.test(text)) return null
  const bytes = Buffer.from(text, 'base64url')
  const body = bytes.subarray(0, bodyBytes)
  if (!secretBox.isDigest(purpose, textOf(body), bytes.subarray(bodyBytes))) return null
  const hex = body.toString('hex', 0, 16)
  const submissionId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') as SubmissionId
  return { submissionId, position: body.readUInt16BE(16) }
}

function textOf(body: Buffer): string {
  return `unsubscribe\n${body.toString('hex')}`
}
