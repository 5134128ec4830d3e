// Reads the bytes of a file synchronously, with one window of them in memory, so only a worker thread may use it.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { Bytes } from './bytes.ts'

const windowBytes = 64 * 1024

/** The file differs from what was written. */
export class ChangedFile extends Error {}

/** Throws `ChangedFile` if the file of a mail does not have the size that was written. */
export function checkSize(sizeBytes: number, writtenBytes: number): void {
  if (sizeBytes !== writtenBytes)
    throw new ChangedFile(`the file of a mail has ${sizeBytes} bytes, and should have ${writtenBytes}`)
}

/** Throws the system's error if the file cannot be read, and `ChangedFile` if it is not `sizeBytes` long. */
export class FileBytes implements Bytes {
  readonly length: number
  readonly #file: number
  #window: Buffer = Buffer.alloc(0)
  #windowStart = 0
  /** A reused buffer for searches that is never handed out, so that reading a mail leaves no copy of it behind. */
  readonly #searched = Buffer.allocUnsafeSlow(windowBytes)
  #searchedStart = 0
  #searchedEnd = 0

  constructor(path: string, sizeBytes: number) {
    this.length = sizeBytes
    this.#file = openSync(path, 'r')
    try {
      checkSize(fstatSync(this.#file).size, sizeBytes)
    } catch (error) {
      this.close()
      throw error
    }
  }

  close(): void {
    closeSync(this.#file)
  }

  at(index: number): number | undefined {
    if (!this.#holds(index, index + 1)) this.#move(index)
    return this.#window[index - this.#windowStart]
  }

  indexOf(wanted: number | Buffer, from: number): number {
    const overlap = typeof wanted === 'number' ? 0 : wanted.length - 1
    for (let at = from; at < this.length; ) {
      if (at < this.#searchedStart || at + overlap >= this.#searchedEnd) this.#search(at)
      const searched = this.#searched.subarray(0, this.#searchedEnd - this.#searchedStart)
      const found = searched.indexOf(wanted, at - this.#searchedStart)
      if (found >= 0) return this.#searchedStart + found
      at = Math.max(at + 1, this.#searchedEnd - overlap)
    }
    return -1
  }

  subarray(start: number, end: number): Buffer {
    const last = Math.min(end, this.length)
    if (last <= start) return Buffer.alloc(0)
    if (last - start > windowBytes) return this.#read(start, last)
    if (!this.#holds(start, last)) this.#move(start)
    return this.#window.subarray(start - this.#windowStart, last - this.#windowStart)
  }

  toString(encoding: 'latin1', start: number, end: number): string {
    return this.subarray(start, end).toString(encoding)
  }

  #holds(start: number, end: number): boolean {
    return start >= this.#windowStart && end <= this.#windowStart + this.#window.length
  }

  /** Allocates a new window, so that slices of the old window stay unchanged. */
  #move(start: number): void {
    this.#window = this.#read(start, Math.min(start + windowBytes, this.length))
    this.#windowStart = start
  }

  #search(start: number): void {
    const end = Math.min(start + windowBytes, this.length)
    this.#fill(this.#searched.subarray(0, end - start), start)
    this.#searchedStart = start
    this.#searchedEnd = end
  }

  #read(start: number, end: number): Buffer {
    const bytes = Buffer.allocUnsafeSlow(Math.max(0, end - start))
    this.#fill(bytes, start)
    return bytes
  }

  #fill(bytes: Buffer, start: number): void {
    for (let at = 0; at < bytes.length; ) {
      const count = readSync(this.#file, bytes, at, bytes.length - at, start + at)
      if (count === 0) throw new ChangedFile('the file of a mail has become shorter')
      at += count
    }
  }
}
