// The manifest of a backup: its origin, and the size and checksum of every file.
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
  /** The time of the snapshot. */
  takenAt: string
  finishedAt: string
  migrations: AppliedMigration[]
  tables: TableFile[]
  /** Tables that the backup does not contain, and why. */
  leftOut: Record<string, string>
  sequences: CopiedSequence[]
  blobs: { count: number; totalBytes: number; list: CheckedFile; missing: string[] }
  /** Null: the secret key is kept elsewhere. */
  key: CheckedFile | null
}

export const format = 'posthorn-backup'
export const formatVersion = 1

/** The text of the manifest, with its own checksum as the last field. */
export function formatManifest(manifest: Manifest): string {
  const checksum = createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
  return `${JSON.stringify({ ...manifest, checksum }, null, 2)}\n`
}

/** Null unless the text is byte for byte the output of `formatManifest`. */
export function parseManifest(text: string): Manifest | null {
  try {
    const { checksum: _, ...manifest } = JSON.parse(text)
    return formatManifest(manifest) === text ? manifest : null
  } catch {
    // Invalid JSON is damage too.
    return null
  }
}
