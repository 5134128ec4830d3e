// Flushes a folder, so that the names of its files survive a power cut, like the files.
import { open } from 'node:fs/promises'

export async function syncFolder(folder: string): Promise<void> {
  const opened = await open(folder, 'r')
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}
