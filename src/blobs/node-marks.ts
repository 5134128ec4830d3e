// Marks that the nodes of one deployment leave among the blobs: who finds those of the others has their folder. Their words
// change while the nodes run, so that a copy of the folder soon holds former ones.
import { randomUUID } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskBlobs } from './disk.ts'

/** A node's mark: whose it is, the number of its data folder, and the word that the others know it by. */
export interface NodeMark {
  folder: number
  word: string
}

/** This node's mark: between `leave` and `publish` the file holds the word that the others know, and the next one. */
export class OwnMark {
  readonly #blobs: Pick<DiskBlobs, 'isThere'>
  readonly #file: string
  readonly #folder: number
  #published: NodeMark | null = null
  #next: NodeMark

  constructor(blobs: Pick<DiskBlobs, 'isThere'>, blobFolder: string, folder: number) {
    this.#blobs = blobs
    this.#file = fileOf(blobFolder, folder)
    this.#folder = folder
    this.#next = this.#newMark()
  }

  /** As the others know it; null before the first one. */
  get published(): NodeMark | null {
    return this.#published
  }

  /** Writes the next one, which is then to be made known; the same one until it is. Null while the blob folder is not ours. */
  async leave(): Promise<NodeMark | null> {
    if (!(await this.#blobs.isThere())) return null
    const words = [this.#next, this.#published].flatMap((mark) => mark?.word ?? [])
    await writeFile(`${this.#file}.new`, words.join('\n'), { mode: 0o600 })
    await rename(`${this.#file}.new`, this.#file)
    return this.#next
  }

  /** The others know the one that was left last. */
  publish(): void {
    this.#published = this.#next
    this.#next = this.#newMark()
  }

  #newMark(): NodeMark {
    return { folder: this.#folder, word: randomUUID() }
  }
}

export async function hasMark(blobFolder: string, { folder, word }: NodeMark): Promise<boolean> {
  const found = await readFile(fileOf(blobFolder, folder), 'utf8').catch((error) => {
    if (error.code !== 'ENOENT') throw error
    return ''
  })
  return found.split('\n').includes(word)
}

function fileOf(blobFolder: string, folder: number): string {
  return join(blobFolder, `node-${folder}`)
}
