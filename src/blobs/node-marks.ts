// Marks that the nodes of one deployment leave among the blobs: who finds those of the others has their folder.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A node's mark: whose it is, the number of its data folder, and a word that is new with each start. */
export interface NodeMark {
  folder: number
  word: string
}

/** Writes the mark over that of the node's earlier start. */
export async function leaveMark(blobFolder: string, { folder, word }: NodeMark): Promise<void> {
  await writeFile(fileOf(blobFolder, folder), word, { mode: 0o600 })
}

export async function hasMark(blobFolder: string, { folder, word }: NodeMark): Promise<boolean> {
  const found = await readFile(fileOf(blobFolder, folder), 'utf8').catch((error) => {
    if (error.code !== 'ENOENT') throw error
    return null
  })
  return found === word
}

function fileOf(blobFolder: string, folder: number): string {
  return join(blobFolder, `node-${folder}`)
}
