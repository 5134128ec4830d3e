// Attachments: files that go out as base64 from any source of bytes, and downloads that come in as streams.
import type { components } from './api.gen.ts'

/** The bytes of a file. Text is base64, as in the API. */
export type Content = string | Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

/** A file to send. */
export type GivenAttachment = Omit<components['schemas']['GivenAttachment'], 'content'> & { content: Content }

/** Bytes that the service sends. The body can be read once. */
export interface Download {
  /** Null if the answer has no length. */
  sizeBytes: number | null
  /** A stranger chose it: never use it as a path. Null without a name. */
  filename: string | null
  body: ReadableStream<Uint8Array>
  /** Reads the whole body. */
  bytes(): Promise<Uint8Array>
}

export function makeDownload(response: Response): Download {
  const size = response.headers.get('content-length')
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
  if (typeof content === 'string') return content
  if (content instanceof Uint8Array) return encodeBase64([content])
  if (content instanceof Blob) return encodeBase64([new Uint8Array(await content.arrayBuffer())])
  const pieces: Uint8Array[] = []
  for await (const piece of content as AsyncIterable<Uint8Array>) pieces.push(piece)
  return encodeBase64(pieces)
}

/** The number of bytes that one call can spread into arguments, a multiple of three so that no padding comes between. */
const stepBytes = 3 * 8_192

function encodeBase64(pieces: Uint8Array[]): string {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let length = 0
  for (const piece of pieces) {
    bytes.set(piece, length)
    length += piece.length
  }
  let text = ''
  for (let start = 0; start < length; start += stepBytes)
    text += btoa(String.fromCharCode(...bytes.subarray(start, start + stepBytes)))
  return text
}
