// Sends mail from any address by the PROXY protocol, as a load balancer in front of the server does.
import { connect, type Socket } from 'node:net'
import { stuff, Wire } from './wire.ts'

export interface ProxiedMail {
  /** The client's address in the PROXY header. */
  ip: string
  helo: string
  /** MAIL FROM; empty for the null return path. */
  from: string
  to: string[]
  raw: Buffer
}

type Client = Pick<ProxiedMail, 'ip' | 'helo'>

/** One connection for several mails, one after another. */
export class ProxiedSession {
  readonly #socket: Socket
  readonly #wire: Wire
  #greeting: string[]
  /** From the last byte of the last mail to the reply. */
  waitedMs = 0

  constructor(server: { host: string; port: number }, { ip, helo }: Client) {
    this.#socket = connect({ host: server.host, port: server.port, noDelay: true })
    this.#wire = new Wire(this.#socket)
    const proxy = ip.includes(':') ? `TCP6 ${ip} 2001:db8:ffff::1` : `TCP4 ${ip} 192.0.2.25`
    this.#greeting = [`PROXY ${proxy} 4000 25\r\n`, `EHLO ${helo}\r\n`]
  }

  /** The reply to the message, or the first reply that is no success. `lost` if the connection ended before. */
  async send({ from, to, raw }: Omit<ProxiedMail, keyof Client>): Promise<string> {
    const recipients = to.map((address) => `RCPT TO:<${address}>\r\n`)
    const steps = [...this.#greeting, `MAIL FROM:<${from}>\r\n`, ...recipients, 'DATA\r\n', stuff(raw)]
    this.#greeting = []
    for (const [index, words] of steps.entries()) {
      await this.#wire.write(words)
      const writtenMs = performance.now()
      const reply = await this.#wire.reply()
      this.waitedMs = performance.now() - writtenMs
      if (reply === null) return 'lost'
      if (!/^[23]/.test(reply) || index === steps.length - 1) return reply
    }
    return 'lost'
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** Sends one mail over a connection of its own. */
export async function sendProxied(
  server: { host: string; port: number },
  { ip, helo, ...mail }: ProxiedMail,
): Promise<string> {
  const session = new ProxiedSession(server, { ip, helo })
  try {
    return await session.send(mail)
  } finally {
    session.close()
  }
}

/** Runs `work` for each item, `count` at the same time. Returns the results in the items' order. */
export async function eachOf<Item, Result>(
  items: readonly Item[],
  count: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const lane = async () => {
    while (next < items.length) {
      const index = next++
      results[index] = await work(items[index]!)
    }
  }
  await Promise.all(Array.from({ length: count }, lane))
  return results
}
