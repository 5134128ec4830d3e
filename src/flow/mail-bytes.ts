// The bytes of a received mail as the parser takes them: from the row, or from a file that holds its blob meanwhile.
import type { Blobs } from '../blobs/blobs.ts'
import type { MailBytes } from '../mail/parse-worker.ts'

/** A mail has either bytes in its row or a blob. */
interface MailRow {
  bytes: Buffer | null
  blob: string | null
  sizeBytes: number
}

export async function withMailBytes<Found>(
  blobs: Blobs,
  { bytes, blob, sizeBytes }: MailRow,
  use: (raw: MailBytes) => Promise<Found>,
): Promise<Found> {
  if (bytes) return await use(bytes)
  return await blobs.withFile(blob!, (path) => use({ path, sizeBytes }))
}
