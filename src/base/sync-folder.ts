// Flushes a folder, so that the names in it outlive a power cut as the files do.
import { open } from 'node:fs/promises'

export async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}
