// Blobs on S3: one object per blob, in 256 prefixes like the folders of a disk, and marks next to them.
import type { Readable } from 'node:stream'
import { FairLimit } from '../../base/fair-limit.ts'
import { type Blobs, type BlobWriter, NoBlob, NotOurStore, type StoredBlob, writeAll } from '../blobs.ts'
import { findObject, listObjects, listUploads } from './listing.ts'
import { openObject, readObject } from './object-reader.ts'
import { bodyOf, type S3Client } from './s3-client.ts'
import { textOf } from './s3-fault.ts'
import { pathOf, withScratch } from './scratch.ts'
import { partBytes, putObject, Upload } from './upload.ts'

const markObject = 'database-id'
/** A store that was ours is taken for ours this long, so that a mail does not wait for the question. */
const oursMs = 5_000
/** The question whose store it is must not wait as long as a mail. */
const shortMs = 4_000
/** Downloads to files of this machine at the same time. */
const maxDownloads = 4
const isUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

interface S3BlobsOptions {
  client: S3Client
  /** A folder of this machine for bytes that pass through. */
  scratchFolder: string
  /** Stores blobs only while the store has the mark of this database. With null, any mark or none will do. */
  databaseId: string | null
}

export class S3Blobs implements Blobs {
  readonly location: string
  readonly #client: S3Client
  readonly #scratchFolder: string
  readonly #databaseId: string | null
  readonly #downloads = new FairLimit(maxDownloads)
  #oursUntilMs = 0

  constructor({ client, scratchFolder, databaseId }: S3BlobsOptions) {
    this.location = client.location
    this.#client = client
    this.#scratchFolder = scratchFolder
    this.#databaseId = databaseId
  }

  async create(key: string): Promise<BlobWriter> {
    await this.#requireOurs()
    const deps = { client: this.#client, scratchFolder: this.#scratchFolder }
    const upload = await Upload.begin(deps, objectOf(key))
    return {
      write: (chunk) => upload.write(chunk),
      commit: async () => {
        await upload.commit()
        await this.#requireStillOurs()
      },
      abort: () => upload.abort(),
    }
  }

  async put(key: string, bytes: Buffer | AsyncIterable<Buffer>): Promise<void> {
    if (!Buffer.isBuffer(bytes)) return await writeAll(await this.create(key), bytes)
    if (bytes.length > partBytes) return await writeAll(await this.create(key), [bytes])
    await this.#requireOurs()
    await putObject(this.#client, objectOf(key), bodyOf(bytes))
    await this.#requireStillOurs()
  }

  read(key: string): Readable {
    return readObject(this.#client, objectOf(key))
  }

  async open(key: string, range: { start: number; end: number }): Promise<Readable | null> {
    return await openObject(this.#client, objectOf(key), range)
  }

  async withFile<Found>(key: string, use: (path: string) => Promise<Found>): Promise<Found> {
    return await this.#downloads.run('', () =>
      withScratch(this.#scratchFolder, async (file) => {
        const bytes = await openObject(this.#client, objectOf(key), null)
        if (!bytes) throw new NoBlob(this.location, key)
        for await (const piece of bytes) await file.appendFile(piece)
        return await use(pathOf(file))
      }),
    )
  }

  async link(): Promise<boolean> {
    return false
  }

  async has(key: string): Promise<boolean> {
    return (await this.#head(objectOf(key))) !== null
  }

  async delete(key: string): Promise<void> {
    const call = { method: 'DELETE', key: objectOf(key), may: [404], patienceMs: shortMs } as const
    await this.#client.send(call)
  }

  async list(part: number): Promise<StoredBlob[]> {
    const prefix = `${folderOf(part)}/`
    const isOurs = ({ key }: StoredBlob) => isUuid.test(key) && objectOf(key).startsWith(prefix)
    const finished = await listObjects(this.#client, prefix)
    return [...finished, ...(await listUploads(this.#client, prefix))].filter(isOurs)
  }

  async writtenAtMs(stored: StoredBlob): Promise<number | null> {
    if (stored.isFinished) {
      const headers = await this.#head(objectOf(stored.key))
      return headers && Date.parse(headers['last-modified']!)
    }
    const uploads = await listUploads(this.#client, objectOf(stored.key))
    return uploads.find(({ name }) => name === stored.name)?.initiatedAtMs ?? null
  }

  async remove({ key, name, isFinished }: StoredBlob): Promise<void> {
    if (isFinished) return await this.delete(key)
    const query = { uploadId: name.slice(key.length + 1) }
    await this.#client.send({ method: 'DELETE', key: objectOf(key), query, may: [404] })
  }

  async findContent(): Promise<string | null> {
    return await findObject(this.#client)
  }

  async owner(): Promise<string | null> {
    return (await this.#readSmall(markObject))?.trim() || null
  }

  async claim(id: string): Promise<void> {
    await putObject(this.#client, markObject, bodyOf(Buffer.from(id)))
  }

  async disown(): Promise<void> {
    await this.#client.send({ method: 'DELETE', key: markObject, may: [404] })
  }

  async findFault(): Promise<string | null> {
    if (this.#databaseId === null) return null
    this.#oursUntilMs = 0
    try {
      const mark = await this.owner()
      if (mark === null) return `${this.location} has no ${markObject}: it is another bucket or prefix`
      if (mark !== this.#databaseId) return `${this.location} belongs to another database (${markObject})`
    } catch (error) {
      if (error instanceof NotOurStore) return error.message
      throw error
    }
    this.#oursUntilMs = performance.now() + oursMs
    return null
  }

  async isThere(): Promise<boolean> {
    return (await this.findFault()) === null
  }

  async readNodeMark(folder: number): Promise<string | null> {
    return await this.#readSmall(`node-${folder}`)
  }

  async writeNodeMark(folder: number, mark: string): Promise<void> {
    const call = { method: 'PUT', key: `node-${folder}`, patienceMs: shortMs } as const
    await this.#client.send({ ...call, body: bodyOf(Buffer.from(mark)) })
  }

  async #requireOurs(): Promise<void> {
    if (performance.now() < this.#oursUntilMs) return
    const fault = await this.findFault()
    if (fault !== null) throw new NotOurStore(fault)
  }

  /** The blobs may have been moved away since the upload began. */
  async #requireStillOurs(): Promise<void> {
    this.#oursUntilMs = 0
    await this.#requireOurs()
  }

  async #readSmall(key: string): Promise<string | null> {
    const call = { method: 'GET', key, may: [404], patienceMs: shortMs } as const
    const { status, text } = await this.#client.send(call)
    if (status !== 404) return text
    if (textOf(text, 'Code') === 'NoSuchBucket')
      throw new NotOurStore(`${this.location}: there is no such bucket`)
    return null
  }

  async #head(key: string): Promise<Record<string, string> | null> {
    const { status, headers } = await this.#client.send({ method: 'HEAD', key, may: [404] })
    return status === 404 ? null : headers
  }
}

function folderOf(part: number): string {
  return part.toString(16).padStart(2, '0')
}

/** UUIDs of version 7 begin with their time. The last characters are random and spread the objects over the prefixes. */
function objectOf(key: string): string {
  return `${key.slice(-2)}/${key}`
}
