// The common interface of the other mail servers: their address, and the messages they keep.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Neighbour {
  host: string
  port: number
  /** Returns the messages it keeps, as stored: with LF line ends. */
  kept(): Buffer[]
  logFile: string
}

/** Returns the messages of a maildir. */
export function readMaildir(folder: string): Buffer[] {
  const fresh = join(folder, 'new')
  return existsSync(fresh) ? readdirSync(fresh).map((name) => readFileSync(join(fresh, name))) : []
}
