// An SMTP client that sends exactly the given bytes, and a player of transcripts (`C:` and `S:` lines).
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type PeerCertificate } from 'node:tls'
import type { Scope } from '../support/until.ts'

export class Talk {
  #socket: Socket
  #received = ''
  #ended = false
  #wake: () => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#listen(socket)
  }

  static async connect(t: Scope, port: number): Promise<Talk> {
    const socket = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true })
    t.after(() => void socket.destroy())
    const talk = new Talk(socket)
    await once(socket, 'connect')
    return talk
  }

  #listen(socket: Socket): void {
    const end = () => {
      this.#ended = true
      this.#wake()
    }
    socket.on('data', (bytes) => {
      this.#received += bytes.toString('latin1')
      this.#wake()
    })
    socket.on('end', end).on('close', end).on('error', end)
  }

  write(bytes: string | Buffer): void {
    this.#socket.write(bytes)
  }

  /** Writes and waits until the bytes have left or the connection is gone. Returns whether they left. */
  async push(bytes: Buffer): Promise<boolean> {
    if (this.#ended || !this.#socket.writable) return false
    await new Promise<unknown>((resolve) => this.#socket.write(bytes, resolve))
    return !this.#ended
  }

  /** Returns the next line without its CRLF, or null if the server has closed. */
  async line(): Promise<string | null> {
    for (;;) {
      const end = this.#received.indexOf('\r\n')
      if (end >= 0) {
        const line = this.#received.slice(0, end)
        this.#received = this.#received.slice(end + 2)
        return line
      }
      if (this.#ended) return null
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Returns the next reply with its lines joined by LF, or null if the server has closed. */
  async reply(): Promise<string | null> {
    const lines: string[] = []
    for (;;) {
      const line = await this.line()
      if (line === null) return null
      lines.push(line)
      if (line[3] !== '-') return lines.join('\n')
    }
  }

  /** Sends a line and returns the reply. */
  async ask(line: string): Promise<string | null> {
    this.write(`${line}\r\n`)
    return this.reply()
  }

  /** Performs the TLS handshake. Rejects if it fails. */
  async secure(
    options: ConnectionOptions = {},
  ): Promise<{ protocol: string | null; certificate: PeerCertificate }> {
    this.#socket.removeAllListeners()
    const secure = connectTls({ socket: this.#socket, rejectUnauthorized: false, ...options })
    await once(secure, 'secureConnect')
    this.#listen(secure)
    this.#socket = secure
    return { protocol: secure.getProtocol(), certificate: secure.getPeerCertificate() }
  }

  /** Stops reading. */
  deaf(): void {
    this.#socket.pause()
  }

  /** Ends the sending side. Replies can still be read. */
  end(): void {
    this.#socket.end()
  }

  destroy(): void {
    this.#socket.destroy()
  }
}

/**
 * Plays a transcript. `C: text` sends a line, and `C= "json"` sends raw bytes without a line end. Lines before the next
 * `S:` leave in one segment. `S: text` expects this reply line, whose final `*` matches any rest. `S.` expects the server
 * to close. `T.` performs the TLS handshake.
 */
export async function play(t: Scope, port: number, transcript: string): Promise<void> {
  const talk = await Talk.connect(t, port)
  let said = ''
  for (const row of transcript.split('\n').map((line) => line.trim())) {
    if (/^C:( |$)/.test(row)) said += `${row.slice(3)}\r\n`
    else if (row.startsWith('C= ')) said += JSON.parse(row.slice(3))
    else if (row !== '') {
      if (said !== '') talk.write(said)
      said = ''
      await expectRow(talk, row, transcript)
    }
  }
  talk.destroy()
}

async function expectRow(talk: Talk, row: string, transcript: string): Promise<void> {
  if (row === 'T.') {
    await talk.secure()
    return
  }
  const line = await talk.line()
  if (row === 'S.') return assert.equal(line, null, transcript)
  assert.ok(row.startsWith('S: '), `not a transcript line: ${row}`)
  const want = row.slice(3)
  if (!want.endsWith('*')) return assert.equal(line, want, transcript)
  assert.ok(line?.startsWith(want.slice(0, -1)), `${line} instead of ${want} in ${transcript}`)
}
