// Marks that the nodes of one deployment leave among the blobs: a node that finds those of the others has their store. Their
// words change while the nodes run, so that a copy of the store soon holds former ones.
import { randomUUID } from 'node:crypto'
import type { Blobs } from './blobs.ts'

/** A node's mark: whose it is, the number of its data folder, and the word that the others know it by. */
export interface NodeMark {
  folder: number
  word: string
}

type MarkedBlobs = Pick<Blobs, 'isThere' | 'writeNodeMark'>

/** This node's mark: between `leave` and `publish` it holds the word that the others know, and the next one. */
export class OwnMark {
  readonly #blobs: MarkedBlobs
  readonly #folder: number
  #published: NodeMark | null = null
  #next: NodeMark

  constructor(blobs: MarkedBlobs, folder: number) {
    this.#blobs = blobs
    this.#folder = folder
    this.#next = this.#newMark()
  }

  /** As the others know it; null before the first one. */
  get published(): NodeMark | null {
    return this.#published
  }

  /** Writes the next one, which is then to be made known; the same one until it is. Null while the store is not ours. */
  async leave(): Promise<NodeMark | null> {
    if (!(await this.#blobs.isThere())) return null
    const words = [this.#next, this.#published].flatMap((mark) => mark?.word ?? [])
    await this.#blobs.writeNodeMark(this.#folder, words.join('\n'))
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

export async function hasMark(
  blobs: Pick<Blobs, 'readNodeMark'>,
  { folder, word }: NodeMark,
): Promise<boolean> {
  const found = await blobs.readNodeMark(folder)
  return found?.split('\n').includes(word) ?? false
}
