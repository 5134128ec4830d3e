// Attachments: files that go out as base64 from any source of bytes, and downloads that come in as streams.
import type { components } from './api.gen.ts'
import { iterate, joinBytes } from './bytes.ts'

/** The bytes of a file. Text is base64, as in the API. */
export type Content = string | Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

/** A file to send. */
export type GivenAttachment = Omit<components['schemas']['GivenAttachment'], 'content'> & { content: Content }

/** Bytes that the service sends. The body can be read once. */
export interface Download {
  /** Null if the answer has no length, or is compressed. */
  sizeBytes: number | null
  /** A stranger chose it: never use it as a path. Null without a name. */
  filename: string | null
  body: ReadableStream<Uint8Array>
  /** Reads the whole body. */
  bytes(): Promise<Uint8Array>
}

export function makeDownload(response: Response): Download {
  // The length of a compressed answer is not that of its bytes.
  const size = response.headers.has('content-encoding') ? null : response.headers.get('content-length')
  const body = response.body ?? new Blob([]).stream()
  return {
    sizeBytes: size === null ? null : Number(size),
    filename: readFilename(response.headers.get('content-disposition') ?? ''),
    body,
    bytes: async () => new Uint8Array(await new Response(body).arrayBuffer()),
  }
}

function readFilename(disposition: string): string | null {
  // RFC 8187 3.2: the extended form is percent-encoded UTF-8.
  const encoded = /filename\*=UTF-8''([^;\s]+)/i.exec(disposition)?.[1]
  if (encoded === undefined) return /filename="([^"]*)"/i.exec(disposition)?.[1] ?? null
  try {
    return decodeURIComponent(encoded)
  } catch {
    // A proxy damaged it.
    return encoded
  }
}

/** Reads the contents of attachments, so that a retry can send them again. Returns the fields in the form of the API. */
export async function readContents(fields: object | undefined): Promise<object | undefined> {
  const { attachments } = (fields ?? {}) as { attachments?: GivenAttachment[] }
  if (attachments === undefined) return fields
  const read = attachments.map(async (attachment) => ({
    ...attachment,
    content: await readContent(attachment.content),
  }))
  return { ...fields, attachments: await Promise.all(read) }
}

async function readContent(content: Content): Promise<string> {
  return typeof content === 'string' ? content : encodeBase64(joinBytes(await readPieces(content)))
}

async function readPieces(content: Exclude<Content, string>): Promise<Uint8Array[]> {
  // The classes of another realm are not ours, so `instanceof` would miss them.
  if (ArrayBuffer.isView(content)) return [bytesOf(content)]
  if ('arrayBuffer' in content) return [new Uint8Array(await content.arrayBuffer())]
  const pieces: Uint8Array[] = []
  for await (const piece of 'getReader' in content ? iterate(content) : content) pieces.push(bytesOf(piece))
  return pieces
}

/** Streams of Node give text if they have an encoding. */
function bytesOf(piece: unknown): Uint8Array {
  if (!ArrayBuffer.isView(piece))
    throw new TypeError('The stream of an attachment must give bytes, not text.')
  return new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength)
}

/** The number of bytes that one call can spread into arguments, a multiple of three so that no padding comes between. */
const stepBytes = 3 * 8_192

function encodeBase64(bytes: Uint8Array): string {
  let text = ''
  for (let start = 0; start < bytes.length; start += stepBytes)
    text += btoa(String.fromCharCode(...bytes.subarray(start, start + stepBytes)))
  return text
}
