// What a backup says of itself: where it came from, and every file of it with its size and checksum.
import { createHash } from 'node:crypto'
import type { AppliedMigration } from '../../postgres/migrate.ts'
import type { CopiedSequence, CopiedTable } from '../../postgres/tables.ts'

export interface CheckedFile {
  sizeBytes: number
  sha256: string
}

export interface TableFile extends CopiedTable, CheckedFile {
  rows: number
}

/** A line of `blobs.jsonl`. */
export interface BlobRecord extends CheckedFile {
  key: string
}

export interface Manifest {
  format: typeof format
  formatVersion: number
  id: string
  /** The release that made it. */
  posthorn: string
  postgres: string
  /** The moment that all of it shows. */
  takenAt: string
  finishedAt: string
  migrations: AppliedMigration[]
  tables: TableFile[]
  /** Tables that are not in it, and why. */
  leftOut: Record<string, string>
  sequences: CopiedSequence[]
  blobs: { count: number; totalBytes: number; list: CheckedFile; missing: string[] }
  /** Null: the secret key is kept elsewhere. */
  key: CheckedFile | null
}

export const format = 'posthorn-backup'
export const formatVersion = 1

/** With a checksum of itself as its last field. */
export function formatManifest(manifest: Manifest): string {
  const checksum = createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
  return `${JSON.stringify({ ...manifest, checksum }, null, 2)}\n`
}

/** Null where the text is not, byte for byte, what `formatManifest` made. */
export function parseManifest(text: string): Manifest | null {
  try {
    const { checksum: _, ...manifest } = JSON.parse(text)
    return formatManifest(manifest) === text ? manifest : null
  } catch {
    // No JSON any more: damaged as well.
    return null
  }
}
