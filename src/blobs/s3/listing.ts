// Lists the objects of a store on S3, and the uploads in parts that nobody completed.
import { NotOurStore, type StoredBlob } from '../blobs.ts'
import type { S3Client } from './s3-client.ts'
import { elementsOf, textOf } from './s3-fault.ts'

/** An upload in parts. Its name is the object's key, a dot and the upload's id. */
export interface UnfinishedUpload extends StoredBlob {
  isFinished: false
  initiatedAtMs: number
}

/** A listing that goes on after this many pages of 1,000 names is no listing. */
const maxPages = 10_000

/** Lists the objects below a prefix, by the last component of their names. */
export async function listObjects(client: S3Client, prefix: string): Promise<StoredBlob[]> {
  const found: StoredBlob[] = []
  const next: Record<string, string> = {}
  for (let page = 0; page < maxPages; page++) {
    const query = { 'list-type': '2', prefix: client.prefix + prefix, ...next }
    const { text } = await client.send({ method: 'GET', key: '', query })
    for (const entry of elementsOf(text, 'Contents')) {
      const name = lastOf(textOf(entry, 'Key'))
      found.push({ name, key: name, isFinished: true })
    }
    if (textOf(text, 'IsTruncated') !== 'true') return found
    next['continuation-token'] = textOf(text, 'NextContinuationToken') ?? ''
  }
  throw new NotOurStore(`${client.location} does not end a listing`)
}

/** Returns the name of an object of the store; null if there is none. */
export async function findObject(client: S3Client): Promise<string | null> {
  const query = { 'list-type': '2', prefix: client.prefix }
  const { text } = await client.send({ method: 'GET', key: '', query })
  return elementsOf(text, 'Contents').map((entry) => textOf(entry, 'Key'))[0] ?? null
}

/** Lists the uploads in parts of the objects whose names begin with the prefix. */
export async function listUploads(client: S3Client, prefix: string): Promise<UnfinishedUpload[]> {
  const found: UnfinishedUpload[] = []
  const next: Record<string, string> = {}
  for (let page = 0; page < maxPages; page++) {
    const query = { uploads: '', prefix: client.prefix + prefix, ...next }
    const { status, text } = await client.send({ method: 'GET', key: '', query, may: [501] })
    // A store without this listing deletes old uploads by itself, or keeps them where we cannot reach them.
    if (status === 501) return []
    for (const entry of elementsOf(text, 'Upload')) {
      const key = lastOf(textOf(entry, 'Key'))
      const initiatedAtMs = Date.parse(textOf(entry, 'Initiated') ?? '')
      found.push({ name: `${key}.${textOf(entry, 'UploadId')}`, key, isFinished: false, initiatedAtMs })
    }
    if (textOf(text, 'IsTruncated') !== 'true') return found
    next['key-marker'] = textOf(text, 'NextKeyMarker') ?? ''
    next['upload-id-marker'] = textOf(text, 'NextUploadIdMarker') ?? ''
  }
  throw new NotOurStore(`${client.location} does not end a listing`)
}

function lastOf(path: string | null): string {
  return (path ?? '').split('/').at(-1)!
}
