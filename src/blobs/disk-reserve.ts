// Reserves free space on disks: if less is free, no mail is received, so that sends, results and deletions continue.
import { statfs } from 'node:fs/promises'
import type { Log } from '../base/log.ts'
import { meters } from '../base/meters.ts'

/** The reserve is a 20th of the disk, up to this, unless the setting says otherwise. */
const maxBytes = 1 << 30
const share = 1 / 20
const checkMs = 2_000

export interface DiskRoom {
  freeBytes: number
  reserveBytes: number
}

/** Returns the free space on the folder's disk, and the reserve: `reserveBytes`, or a share of the disk if it is null. */
export async function readDiskRoom(folder: string, reserveBytes: number | null): Promise<DiskRoom> {
  const { bavail, blocks, bsize } = await statfs(folder)
  const derived = Math.min(maxBytes, blocks * bsize * share)
  return { freeBytes: bavail * bsize, reserveBytes: reserveBytes ?? derived }
}

interface DiskReserveOptions {
  folders: string[]
  reserveBytes: number | null
  log: Log
}

/** Checks the folders' disks every two seconds, not at each mail. */
export class DiskReserve {
  readonly #options: DiskReserveOptions
  #isShort = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: DiskReserveOptions) {
    this.#options = options
  }

  /** Whether one of the disks has less free space than its reserve. */
  get isShort(): boolean {
    return this.#isShort
  }

  /** Checks once, and then every two seconds until `stop`. */
  async start(): Promise<void> {
    await this.#check()
    this.#timer = setInterval(() => void this.#check(), checkMs)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
  }

  async #check(): Promise<void> {
    const { folders, reserveBytes, log } = this.#options
    // Ignores a disk that cannot be checked: its writers will get the error.
    const found = await Promise.all(
      folders.map((folder) => readDiskRoom(folder, reserveBytes).catch(() => null)),
    )
    const rooms = found.filter((room) => room !== null)
    if (rooms.length > 0) meters.diskFree.set(Math.min(...rooms.map(({ freeBytes }) => freeBytes)))
    const isShort = rooms.some((room) => room.freeBytes < room.reserveBytes)
    if (isShort !== this.#isShort) {
      if (isShort) log.warn({ rooms }, 'disk is almost full: mail is refused until space is freed')
      else log.info({ rooms }, 'disk has space again: mail is accepted')
    }
    this.#isShort = isShort
    meters.diskShort.set(isShort ? 1 : 0)
  }
}
