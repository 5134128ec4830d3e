// One blob on its way to S3: a single call up to 16 MiB, otherwise in parts. Each part waits in a file for its call.
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { type BlobWriter, NotOurStore } from '../blobs.ts'
import { BufferedWriter } from '../buffered-writer.ts'
import { bodyOf, type S3Body, type S3Client } from './s3-client.ts'
import { textOf } from './s3-fault.ts'
import { openScratch, readStart } from './scratch.ts'

export const partBytes = 16 << 20
/** A call that only asks or cleans up gives up sooner. */
const shortMs = 5_000

interface UploadDeps {
  client: S3Client
  /** A folder of this machine for the part that is being filled. */
  scratchFolder: string
}

interface SentPart {
  etag: string
  /** The checksum, if the store repeated it. An older store refuses a completion that names one. */
  checksum: string | undefined
}

/** Holds up to one part in a file, so an upload needs little memory and each attempt can read the bytes again. */
export class Upload implements BlobWriter {
  readonly #client: S3Client
  readonly #object: string
  readonly #file: FileHandle
  readonly #buffered: BufferedWriter
  #hash = createHash('sha256')
  #filledBytes = 0
  #sentBytes = 0
  #uploadId: string | null = null
  readonly #sent: SentPart[] = []

  private constructor(client: S3Client, object: string, file: FileHandle) {
    this.#client = client
    this.#object = object
    this.#file = file
    this.#buffered = new BufferedWriter(file)
  }

  static async begin({ client, scratchFolder }: UploadDeps, object: string): Promise<Upload> {
    return new Upload(client, object, await openScratch(scratchFolder))
  }

  async write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; ) {
      // A full part waits for more bytes: if there are none, the blob needs no parts.
      if (this.#filledBytes === partBytes) await this.#sendPart()
      const piece = chunk.subarray(at, at + partBytes - this.#filledBytes)
      await this.#buffered.write(piece)
      this.#hash.update(piece)
      this.#filledBytes += piece.length
      at += piece.length
    }
  }

  async commit(): Promise<void> {
    const sizeBytes = this.#sentBytes + this.#filledBytes
    if (this.#uploadId === null) {
      await putObject(this.#client, this.#object, await this.#takePart())
    } else {
      await this.#sendPart()
      await this.#complete()
      await confirm(this.#client, this.#object, { sizeBytes })
    }
    this.#uploadId = null
    await this.#file.close()
  }

  async abort(): Promise<void> {
    await this.#file.close().catch(() => {}) // already closed if `commit` failed at its end
    if (this.#uploadId === null) return
    const query = { uploadId: this.#uploadId }
    const call = { method: 'DELETE', key: this.#object, query, may: [404], patienceMs: shortMs } as const
    // The sweep aborts it later.
    await this.#client.send(call).catch(() => {})
  }

  async #sendPart(): Promise<void> {
    this.#uploadId ??= await this.#initiate()
    const body = await this.#takePart()
    const { headers } = await this.#client.send({
      method: 'PUT',
      key: this.#object,
      query: { partNumber: String(this.#sent.length + 1), uploadId: this.#uploadId },
      headers: { 'x-amz-checksum-sha256': checksumOf(body) },
      body,
    })
    this.#sent.push({ etag: headers['etag'] ?? '', checksum: headers['x-amz-checksum-sha256'] })
    this.#sentBytes += body.sizeBytes
    this.#buffered.rewind()
    this.#filledBytes = 0
  }

  /** The bytes of the file, as the body of a call. */
  async #takePart(): Promise<S3Body> {
    await this.#buffered.flush()
    const [file, sizeBytes] = [this.#file, this.#filledBytes]
    const sha256 = this.#hash.digest('hex')
    this.#hash = createHash('sha256')
    return { sizeBytes, sha256, open: () => readStart(file, sizeBytes) }
  }

  async #initiate(): Promise<string> {
    const headers = { 'x-amz-checksum-algorithm': 'SHA256' }
    const call = { method: 'POST', key: this.#object, query: { uploads: '' }, headers } as const
    const id = textOf((await this.#client.send(call)).text, 'UploadId')
    if (!id) throw new NotOurStore(`${this.#client.location} gave no id to an upload in parts`)
    return id
  }

  async #complete(): Promise<void> {
    const parts = this.#sent.map(
      ({ etag, checksum }, index) =>
        `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag.replaceAll('"', '&quot;')}</ETag>${
          checksum ? `<ChecksumSHA256>${checksum}</ChecksumSHA256>` : ''
        }</Part>`,
    )
    const xml = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`
    await this.#client.send({
      method: 'POST',
      key: this.#object,
      query: { uploadId: this.#uploadId! },
      headers: { 'content-type': 'application/xml' },
      body: bodyOf(Buffer.from(xml)),
      // An earlier attempt may have completed it, and its answer was lost. The confirmation finds out.
      may: [404],
    })
  }
}

/** Stores an object in one call, and confirms it. */
export async function putObject(client: S3Client, object: string, body: S3Body): Promise<void> {
  const checksum = checksumOf(body)
  const headers = { 'x-amz-checksum-sha256': checksum, 'content-type': 'application/octet-stream' }
  await client.send({ method: 'PUT', key: object, headers, body })
  await confirm(client, object, { sizeBytes: body.sizeBytes, checksum })
}

interface Expected {
  sizeBytes: number
  checksum?: string
}

/** Asks the store what it has. An object that was acknowledged and is missing or different is not stored. */
async function confirm(client: S3Client, object: string, { sizeBytes, checksum }: Expected): Promise<void> {
  const call = {
    method: 'HEAD',
    key: object,
    headers: { 'x-amz-checksum-mode': 'ENABLED' },
    may: [404],
  } as const
  const { status, headers } = await client.send(call)
  if (status === 404) throw new NotOurStore(`${client.location} acknowledged ${object}, but does not have it`)
  if (Number(headers['content-length']) !== sizeBytes)
    throw new NotOurStore(
      `${client.location} has ${headers['content-length']} of the ${sizeBytes} bytes of ${object}`,
    )
  const found = headers['x-amz-checksum-sha256']
  if (found !== undefined && checksum !== undefined && found !== checksum)
    throw new NotOurStore(`${client.location} has other bytes of ${object}`)
}

function checksumOf({ sha256 }: S3Body): string {
  return Buffer.from(sha256, 'hex').toString('base64')
}
