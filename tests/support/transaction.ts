// A test's mail client for whole envelopes: several recipients, and the code of each reply.
import { connect } from 'node:net'
import { stuff, Wire } from './wire.ts'

interface Transaction {
  to: string[]
  raw: string | Buffer
  from?: string
  /** Whether MAIL announces the size. */
  announced?: boolean
  /** Runs after the last RCPT, before the message. */
  beforeDot?: () => Promise<void>
}

export class Sender {
  readonly #server: { host: string; port: number }
  readonly #localAddress: string | undefined

  constructor(server: { host: string; port: number }, localAddress?: string) {
    this.#server = server
    this.#localAddress = localAddress
  }

  /** The codes, such as `250 2.1.5`, of the replies to each RCPT and, if any was accepted, to the message. */
  async send({ to, raw, from = 'someone@far.test', announced, beforeDot }: Transaction): Promise<string[]> {
    const socket = connect({
      ...this.#server,
      noDelay: true,
      ...(this.#localAddress && { localAddress: this.#localAddress }),
    })
    const wire = new Wire(socket)
    const ask = async (words: string | Buffer) => {
      await wire.write(words)
      return ((await wire.reply()) ?? 'lost').slice(0, 9)
    }
    try {
      await wire.reply()
      await ask('EHLO sender.test\r\n')
      await ask(`MAIL FROM:<${from}>${announced ? ` SIZE=${raw.length}` : ''}\r\n`)
      const replies: string[] = []
      for (const address of to) replies.push(await ask(`RCPT TO:<${address}>\r\n`))
      if (!replies.some((reply) => reply.startsWith('250'))) return replies
      await beforeDot?.()
      await ask('DATA\r\n')
      return [...replies, await ask(stuff(Buffer.from(raw)))]
    } finally {
      socket.destroy()
    }
  }
}
