// Keeps PostgreSQL's log from growing without end, while PostgreSQL has it open.
import { copyFile, stat, truncate } from 'node:fs/promises'

const maxBytes = 16 << 20

/** Copies a log over 16 MiB to `<log>.1` and empties it. PostgreSQL goes on appending. The next call retries a failure. */
export async function boundLog(log: string): Promise<void> {
  const size = (await stat(log).catch(() => null))?.size ?? 0
  if (size <= maxBytes) return
  try {
    await copyFile(log, `${log}.1`)
    await truncate(log)
  } catch {
    // For example, the disk is full. A long log does no harm.
  }
}
