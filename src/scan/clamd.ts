// Scans bytes with clamd over its INSTREAM command, and returns a missing answer as a value too.
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'

export type ClamdAddress = { host: string; port: number } | { path: string }

/**
 * `failed`: clamd did not examine all of the content, and would not another time. `later`: it is alive but gave no
 * verdict. `lost`: it took the bytes and has been unreachable since, perhaps because of them. `unreachable`: it cannot
 * be reached, whatever the bytes are.
 */
export interface ScanVerdict {
  state: 'clean' | 'infected' | 'failed' | 'later' | 'lost' | 'unreachable'
  /** The finding, or the fault. */
  detail: string
}

type Pieces = Iterable<Buffer> | AsyncIterable<Buffer>

interface ClamdOptions {
  connectMs?: number
  /** Time limit for one stream. clamd's own limit, MaxScanTime, is two minutes. */
  answerMs?: number
}

/** `isCut`: the connection ended before an answer, but not by a timeout. `isOpened`: it was established. */
type Reply = { text: string; isSent: boolean } | { fault: string; isCut: boolean; isOpened: boolean }

const maxReplyBytes = 4096
const pingMs = 5_000

export class Clamd {
  readonly #address: ClamdAddress
  readonly #connectMs: number
  readonly #answerMs: number
  readonly #open = new Set<Socket>()
  #isClosed = false

  constructor(address: ClamdAddress, { connectMs = 5_000, answerMs = 150_000 }: ClamdOptions = {}) {
    this.#address = address
    this.#connectMs = connectMs
    this.#answerMs = answerMs
  }

  /** Scans the content, which may be opened twice. Rejects only if the content cannot be read. */
  async scan(open: () => Pieces): Promise<ScanVerdict> {
    const first = await this.#stream(open())
    if (!('fault' in first)) return verdictOf(first)
    if (!(await this.isAlive()))
      return { state: first.isOpened ? 'lost' : 'unreachable', detail: first.fault }
    if (!first.isCut) return { state: 'later', detail: first.fault }
    // QUIRK: clamd resets a stream over its StreamMaxLength, and the reply may be lost with it. A killed clamd resets it
    // too. A clamd that is alive cut the stream itself, and will do so again.
    const second = await this.#stream(open())
    if (!('fault' in second)) return verdictOf(second)
    if (!(await this.isAlive())) return { state: 'lost', detail: second.fault }
    return { state: second.isCut ? 'failed' : 'later', detail: second.fault }
  }

  /** clamd's version. Rejects with the reason if clamd does not answer. */
  async version(): Promise<string> {
    const reply = await this.#converse([Buffer.from('zVERSION\0')], pingMs)
    if ('fault' in reply) throw new Error(reply.fault)
    return reply.text.slice(0, 100)
  }

  /** Whether clamd answers. */
  async isAlive(): Promise<boolean> {
    const reply = await this.#converse([Buffer.from('zPING\0')], pingMs)
    return 'text' in reply && reply.text === 'PONG'
  }

  /** Ends all open scans. From then on clamd counts as unreachable. */
  close(): void {
    this.#isClosed = true
    for (const socket of this.#open) socket.destroy()
  }

  #stream(content: Pieces): Promise<Reply> {
    return this.#converse(frame(content), this.#answerMs)
  }

  #converse(request: Pieces, answerMs: number): Promise<Reply> {
    if (this.#isClosed) return Promise.resolve({ fault: 'scanning has ended', isCut: true, isOpened: false })
    return new Promise((resolve, reject) => {
      const socket = connect({ ...this.#address })
      this.#open.add(socket)
      let text = ''
      let isOpened = false
      const end = () => {
        clearTimeout(timer)
        this.#open.delete(socket)
        socket.destroy()
        source.destroy()
      }
      const settle = (reply: Reply) => {
        end()
        resolve(reply)
      }
      const fail = (end: { fault: string; isCut: boolean }) => settle({ ...end, isOpened })
      const giveUp = () => fail({ fault: 'no answer in time', isCut: false })
      let timer = setTimeout(giveUp, this.#connectMs)
      const source = Readable.from(request)
      source.on('error', (error) => {
        end()
        reject(error)
      })
      socket.setEncoding('latin1')
      socket.on('connect', () => {
        isOpened = true
        clearTimeout(timer)
        timer = setTimeout(giveUp, answerMs)
        source.pipe(socket, { end: false })
      })
      socket.on('data', (piece: string) => {
        text += piece
        const end = text.search(/[\0\n]/)
        if (end >= 0) settle({ text: text.slice(0, end), isSent: source.readableEnded })
        else if (text.length > maxReplyBytes)
          fail({ fault: `an answer of more than ${maxReplyBytes} bytes`, isCut: false })
      })
      socket.on('error', (error) => fail({ fault: error.message, isCut: true }))
      socket.on('close', () => fail({ fault: 'the connection was closed', isCut: true }))
    })
  }
}

async function* frame(content: Pieces): AsyncGenerator<Buffer> {
  yield Buffer.from('zINSTREAM\0')
  for await (const piece of content) {
    // An empty piece would end the stream.
    if (piece.length === 0) continue
    const length = Buffer.alloc(4)
    length.writeUInt32BE(piece.length)
    yield length
    yield piece
  }
  yield Buffer.alloc(4)
}

/** The verdict of a reply. A reply that is not understood gives `later`. */
function verdictOf({ text, isSent }: { text: string; isSent: boolean }): ScanVerdict {
  const found = /^stream: (\S.*) FOUND$/.exec(text)?.[1]
  if (found !== undefined) {
    const isUnread = /^Heuristics\.(?:Encrypted|Limits\.Exceeded)\b/.test(found)
    return { state: isUnread ? 'failed' : 'infected', detail: found }
  }
  if (text === 'INSTREAM size limit exceeded. ERROR') return { state: 'failed', detail: text }
  // An OK before the end of the content does not cover all of it.
  if (text === 'stream: OK' && isSent) return { state: 'clean', detail: '' }
  return { state: 'later', detail: `unexpected answer: ${JSON.stringify(text.slice(0, 200))}` }
}
