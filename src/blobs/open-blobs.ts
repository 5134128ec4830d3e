// Opens the store of blobs that the settings name: a folder, or a bucket on S3.
import type { Blobs } from './blobs.ts'
import { DiskBlobs } from './disk.ts'
import type { CredentialSettings } from './s3/credentials.ts'
import type { S3Address } from './s3/s3-address.ts'

/** The store that the settings name. */
export type BlobStore = { folder: string } | { s3: S3Address; credentials: CredentialSettings }

interface OpenOptions {
  store: BlobStore
  /** A folder of this machine for bytes on their way to and from S3. */
  scratchFolder: string
  /** Stores blobs only in a store with the mark of this database. With null, any mark or none will do. */
  databaseId: string | null
}

/** Makes no connection yet. The client for S3 is loaded only for a bucket: it takes a part of the start. */
export async function openBlobs({ store, scratchFolder, databaseId }: OpenOptions): Promise<Blobs> {
  if ('folder' in store) return new DiskBlobs(store.folder, databaseId)
  const { createS3Blobs } = await import('./s3/create-s3-blobs.ts')
  return createS3Blobs(store, { scratchFolder, databaseId })
}
