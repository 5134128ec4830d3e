// A scripted SMTP server that follows a transcript exactly: the client lines it expects, and the lines it sends.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Scope } from '../support/until.ts'

function fixture(name: string): string {
  return readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8')
}

const identity = { key: fixture('tls-key.pem'), cert: fixture('tls-cert.pem') }
/** The certificate that `tls` uses: self-signed, for mx.test. */
export const certificate = identity.cert

export interface Played {
  port: number
  /** Resolves when the connection is over: to null if the script ran to its end, otherwise to the deviation. */
  ended: Promise<string | null>
}

/**
 * Plays `script` on one connection. Each line is one of
 * - `S: text`: sends the line with CRLF
 * - `S! text`: sends the text raw (JSON string escapes, no CRLF)
 * - `C: text`: expects the line with CRLF
 * - `something`: waits for bytes of any kind
 * - `quiet`: expects that the client has sent nothing more
 * - `tls`: becomes a TLS server
 * - `deaf`: stops reading
 * - `gone`: expects that the client closes
 * - `close`, `reset`: closes
 * - `silence`: sends nothing until the client closes
 */
export async function play(scope: Scope, script: string): Promise<Played> {
  const server = createServer({ noDelay: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const ended = once(server, 'connection').then(([socket]: Socket[]) => {
    scope.after(() => void socket!.destroy())
    return new Player(socket!).play(script)
  })
  scope.after(() => void server.close())
  return { port: (server.address() as { port: number }).port, ended }
}

class Player {
  #socket: Socket
  #held = Buffer.alloc(0)
  #over = false
  #wake: (() => void) | null = null

  constructor(socket: Socket) {
    this.#socket = socket
    this.#listen()
  }

  async play(script: string): Promise<string | null> {
    const lines = script.split('\n').map((line) => line.trim())
    for (const [index, line] of lines.entries()) {
      if (line === '' || line.startsWith('#')) continue
      const wrong = await this.#step(line)
      if (wrong) return `line ${index + 1}, "${line}": ${wrong}`
    }
    this.#socket.end()
    return null
  }

  async #step(line: string): Promise<string | null> {
    const mark = line.slice(0, 2)
    if (mark === 'S:') this.#socket.write(`${line.slice(3)}\r\n`)
    else if (mark === 'S!') this.#socket.write(Buffer.from(JSON.parse(`"${line.slice(3)}"`), 'latin1'))
    else if (mark === 'C:') return this.#expect(line.slice(3))
    else if (line === 'quiet') return this.#quiet()
    else if (line === 'something') await this.#more()
    else if (line === 'tls') this.#startTls()
    else if (line === 'deaf') this.#socket.pause()
    else if (line === 'close') this.#socket.end()
    else if (line === 'reset') this.#socket.resetAndDestroy()
    else if (line === 'gone' || line === 'silence') await this.#closed()
    else return 'what is that?'
    return null
  }

  async #expect(wanted: string): Promise<string | null> {
    let end = this.#held.indexOf('\r\n')
    for (; end < 0; end = this.#held.indexOf('\r\n')) {
      if (this.#over) return `the client closed after "${this.#held.toString()}"`
      await this.#more()
    }
    const got = this.#held.toString('utf8', 0, end)
    this.#held = this.#held.subarray(end + 2)
    return got === wanted ? null : `got "${got}"`
  }

  async #quiet(): Promise<string | null> {
    for (let round = 0; round < 5; round++) await turn()
    return this.#held.length === 0 ? null : `got "${this.#held.toString()}"`
  }

  async #closed(): Promise<void> {
    while (!this.#over) await this.#more()
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #startTls(): void {
    this.#socket.removeAllListeners('data')
    this.#socket = new TLSSocket(this.#socket, { isServer: true, ...identity })
    this.#listen()
  }

  #listen(): void {
    const end = () => {
      this.#over = true
      this.#wake?.()
    }
    this.#socket.on('error', end).on('close', end).on('end', end)
    this.#socket.on('data', (chunk: Buffer) => {
      this.#held = Buffer.concat([this.#held, chunk])
      this.#wake?.()
    })
  }
}
