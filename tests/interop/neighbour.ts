// What the mail servers next door have in common: where they listen and what they keep.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Neighbour {
  host: string
  port: number
  /** The messages it keeps, as files have them: LF line ends. */
  kept(): Buffer[]
  logFile: string
}

/** The messages of a maildir. */
export function readMaildir(folder: string): Buffer[] {
  const fresh = join(folder, 'new')
  return existsSync(fresh) ? readdirSync(fresh).map((name) => readFileSync(join(fresh, name))) : []
}
