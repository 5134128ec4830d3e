// The common interface of the other mail servers: their address, and the messages they keep.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
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

/** Returns whether a program accepts connections there. */
export function isListening(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
