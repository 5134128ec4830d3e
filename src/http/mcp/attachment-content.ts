// Shows an attachment to a model: text as text, other bytes as base64, up to a size.
import { ServiceError } from '../../base/errors.ts'
import { type OperationAnswer, rethrowInterrupted } from './operations.ts'
import { type Content, enveloped } from './received-mail.ts'

/** The largest file that is no text. */
const maxBytes = 256 << 10
const maxTextChars = 64_000

/** Reads the bytes of a download. Throws `attachment_too_large` for a large file that is no text. */
export async function readAttachmentContent(
  answer: OperationAnswer,
  { attachmentId }: Record<string, unknown>,
): Promise<Content[]> {
  const sizeBytes = Number(answer.headers['content-length'])
  const bytes = await readFirst(answer)
  const text = textIn(bytes)
  if (text !== null) {
    const isCut = text.length > maxTextChars || sizeBytes > bytes.length
    const content = { attachmentId, sizeBytes, text: text.slice(0, maxTextChars) }
    return [{ type: 'text', text: enveloped(isCut ? { ...content, textIsCut: true } : content) }]
  }
  if (sizeBytes > maxBytes)
    throw new ServiceError(
      'attachment_too_large',
      `The attachment has ${sizeBytes} bytes. This tool returns at most ${maxBytes}: download it with the API.`,
    )
  return [{ type: 'text', text: enveloped({ attachmentId, sizeBytes, base64: bytes.toString('base64') }) }]
}

/** Reads up to `maxBytes`, and ends the download. */
async function readFirst({ body, end, hold }: OperationAnswer): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      hold(chunk.length)
      chunks.push(chunk)
      size += chunk.length
      if (size >= maxBytes) break
    }
  } catch (failure) {
    // The operation has logged it, or the organization holds too much.
    rethrowInterrupted(failure)
  } finally {
    end()
  }
  return Buffer.concat(chunks).subarray(0, maxBytes)
}

/** The text of the bytes if they are UTF-8 without control characters; null otherwise. The last character may be cut. */
function textIn(bytes: Buffer): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return /[\x00-\x08\x0e-\x1a\x1c-\x1f]/.test(text) ? null : text
  } catch {
    // Other bytes than UTF-8: not a text that a model can read.
    return null
  }
}
