// Mail from any address: a sender who names it by the PROXY protocol, as a balancer in front of the server would.
import { connect } from 'node:net'
import { stuff, Wire } from './wire.ts'

export interface ProxiedMail {
  /** Of the client, as it is named. */
  ip: string
  helo: string
  /** MAIL FROM; empty for the null return path. */
  from: string
  to: string[]
  raw: Buffer
}

/** The reply to the message, or the first reply that is no success; `lost` where the connection ended before. */
export async function sendProxied(
  server: { host: string; port: number },
  { ip, helo, from, to, raw }: ProxiedMail,
): Promise<string> {
  const socket = connect({ host: server.host, port: server.port, noDelay: true })
  const wire = new Wire(socket)
  const proxy = ip.includes(':') ? `TCP6 ${ip} 2001:db8:ffff::1` : `TCP4 ${ip} 192.0.2.25`
  const steps: (string | Buffer)[] = [
    `PROXY ${proxy} 4000 25\r\n`,
    `EHLO ${helo}\r\n`,
    `MAIL FROM:<${from}>\r\n`,
    ...to.map((address) => `RCPT TO:<${address}>\r\n`),
    'DATA\r\n',
    stuff(raw),
  ]
  try {
    for (const [index, words] of steps.entries()) {
      await wire.write(words)
      const reply = await wire.reply()
      if (reply === null) return 'lost'
      if (!/^[23]/.test(reply) || index === steps.length - 1) return reply
    }
    return 'lost'
  } finally {
    socket.destroy()
  }
}

/** Does `work` for each, `count` at the same time; the results in their order. */
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
