// The worker thread that reads large bodies: JSON, its digest, and files from base64.
import { parentPort } from 'node:worker_threads'
import type { PoolFault } from '../../base/thread-pool.ts'
import { requestHash } from '../../flow/idempotency.ts'
import { decodeBase64 } from './base64.ts'
import { parseJson } from './parse-json.ts'
import { RequestFault } from './request-fault.ts'

export interface BodyRequest {
  bytes: Uint8Array
  /** The path parameters, which the digest covers as well. */
  params: object
}

interface ReadBody {
  /** The body. Texts of files that are in `files` are empty here. */
  value: unknown
  requestHash: Uint8Array
  files: Map<number, Uint8Array<ArrayBuffer> | null>
}

export type BodyAnswer = { body: ReadBody } | { refusal: { code: RequestFault['code']; message: string } }

/** Shorter files are decoded by their operation: a hundred of them take a millisecond or two. */
const shortBase64 = 16 * 1024

const port = parentPort
port?.on('message', (request: BodyRequest) => {
  try {
    const body = read(request)
    const bytes = [...body.files.values()].flatMap((file) => (file ? [file.buffer] : []))
    port.postMessage({ body } satisfies BodyAnswer, bytes)
  } catch (error) {
    port.postMessage(refusalOf(error))
  }
})
port?.postMessage('ready')

function refusalOf(error: unknown): BodyAnswer | PoolFault {
  if (!(error instanceof RequestFault)) return { fault: String(error) }
  return { refusal: { code: error.code, message: error.message } }
}

function read({ bytes, params }: BodyRequest): ReadBody {
  const value = parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  const digest = new Uint8Array(requestHash(params, value))
  return { value, requestHash: digest, files: takeFiles(value) }
}

/** Removes the large files from the body and decodes them. The body has not been validated yet. */
function takeFiles(value: unknown): ReadBody['files'] {
  const files: ReadBody['files'] = new Map()
  const attachments = (value as { attachments?: unknown } | null)?.attachments
  if (!Array.isArray(attachments)) return files
  attachments.forEach((attachment: { content?: unknown } | null, index) => {
    const content = attachment?.content
    if (typeof content !== 'string' || content.length <= shortBase64) return
    const bytes = decodeBase64(content)
    files.set(index, bytes && ownBytes(bytes))
    attachment!.content = ''
  })
  return files
}

/** Returns the bytes in a buffer of their own, which can be transferred. */
function ownBytes({ buffer, byteOffset, byteLength }: Buffer): Uint8Array<ArrayBuffer> {
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
  return isOwn ? new Uint8Array(buffer) : new Uint8Array(new Uint8Array(buffer, byteOffset, byteLength))
}
