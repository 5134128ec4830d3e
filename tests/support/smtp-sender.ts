// A test's mail client: sends one message in lock step and reports exactly how far it came.
import { connect } from 'node:net'
import { stuff, Wire } from './wire.ts'

export interface Mail {
  from: string
  to: string
  /** The message unchanged. Dots are stuffed here. Line ends stay, but a missing last CRLF is added. */
  raw: Buffer
}

/**
 * `accepted`: 250 after the final dot. `refused`: any 4xx or 5xx; `stage` names the refused command. `lost`: the connection
 * ended or was silent past the time limit. At `stage` `message` the final dot was written, so the mail may have arrived.
 */
export interface Sent {
  outcome: 'accepted' | 'refused' | 'lost'
  stage: 'connect' | 'banner' | 'hello' | 'mail' | 'rcpt' | 'text' | 'message'
  reply: string
  tookMs: number
}

/** Sends one mail over a connection of its own. Calls `onDot` once the final dot is sent. Never rejects. */
export async function sendMail(
  to: { host: string; port: number },
  mail: Mail,
  { timeoutMs = 20_000, onDot }: { timeoutMs?: number; onDot?: (() => void) | undefined } = {},
): Promise<Sent> {
  const startMs = performance.now()
  const socket = connect({ host: to.host, port: to.port, noDelay: true })
  const wire = new Wire(socket)
  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  try {
    return { ...(await converse(wire, mail, onDot)), tookMs: performance.now() - startMs }
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}

async function converse(
  wire: Wire,
  { from, to, raw }: Mail,
  onDot = () => {},
): Promise<Omit<Sent, 'tookMs'>> {
  const steps: [Sent['stage'], string | Buffer | null][] = [
    ['banner', null],
    ['hello', 'EHLO sender.test\r\n'],
    ['mail', `MAIL FROM:<${from}>\r\n`],
    ['rcpt', `RCPT TO:<${to}>\r\n`],
    ['text', 'DATA\r\n'],
    ['message', stuff(raw)],
  ]
  let last = ''
  for (const [stage, words] of steps) {
    if (words !== null) await wire.write(words)
    if (stage === 'message') onDot()
    const reply = await wire.reply()
    if (reply === null) return { outcome: 'lost', stage: stage === 'banner' ? 'connect' : stage, reply: last }
    if (!/^[23]/.test(reply)) return { outcome: 'refused', stage, reply }
    last = reply
  }
  void wire.write('QUIT\r\n')
  return { outcome: 'accepted', stage: 'message', reply: last }
}
