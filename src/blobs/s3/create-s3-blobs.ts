// Builds the store of blobs on S3 from its address and the credentials' settings.
import { type CredentialSettings, CredentialSource } from './credentials.ts'
import type { S3Address } from './s3-address.ts'
import { S3Blobs } from './s3-blobs.ts'
import { S3Client } from './s3-client.ts'

export function createS3Blobs(
  { s3, credentials }: { s3: S3Address; credentials: CredentialSettings },
  options: { scratchFolder: string; databaseId: string | null },
): S3Blobs {
  const client = new S3Client({ address: s3, credentials: new CredentialSource(credentials) })
  return new S3Blobs({ client, ...options })
}
