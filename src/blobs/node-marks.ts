// Marks that a deployment's nodes write among the blobs: a node that finds the marks of the others has the same store. The
// words in the marks change while the nodes run, so that a copy of the store soon has outdated words.
import { randomUUID } from 'node:crypto'
import type { Blobs } from './blobs.ts'

/** A node's mark: the number of its data folder, and the word by which the other nodes know it. */
export interface NodeMark {
  folder: number
  word: string
}

type MarkedBlobs = Pick<Blobs, 'isThere' | 'writeNodeMark'>

/** This node's mark. Between `leave` and `publish` its file has both the word that the others know and the next. */
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

  /** The mark that the others know; null before the first. */
  get published(): NodeMark | null {
    return this.#published
  }

  /** Writes the next mark and returns it, the same one until `publish`. Returns null while the store is not ours. */
  async leave(): Promise<NodeMark | null> {
    if (!(await this.#blobs.isThere())) return null
    const words = [this.#next, this.#published].flatMap((mark) => mark?.word ?? [])
    await this.#blobs.writeNodeMark(this.#folder, words.join('\n'))
    return this.#next
  }

  /** Called once the others know the mark that `leave` wrote last. */
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
