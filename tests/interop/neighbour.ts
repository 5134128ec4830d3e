// What the mail servers next door have in common: where they listen and what they keep.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
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

/** A port that was free a moment ago, for servers that cannot choose one themselves. */
export function freePort(host = '127.0.0.1'): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
