// A receiving SMTP server for tests that counts the copies it gets and answers by a rule.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { Scope } from './until.ts'
import { Wire } from './wire.ts'

type Stage = 'banner' | 'hello' | 'mail' | 'rcpt' | 'text' | 'message'

/** The current command: the client's words, and the commands of its transaction so far. */
interface Step {
  stage: Stage
  /** The client's address. */
  peer: string
  command: string
  from: string
  recipients: readonly string[]
}

/** A reply that replaces the usual one. `null` sends the usual one; `'cut'` closes without a reply. */
export type Rule = (step: Step) => string | null | Promise<string | null>

/** One recipient's copy of one message. It is counted before its 250 is written. */
interface Copy {
  messageId: string
  from: string
  recipient: string
  atMs: number
  raw: Buffer
  /** The client's address, and the name in its EHLO. */
  peer: string
  hello: string
}

export interface Sink {
  host: string
  port: number
  url: string
  copies: Copy[]
  /** Connections accepted so far, and those open now. */
  connections: number
  open: number
  /** The client address of each connection. */
  peers: string[]
  /** How the next commands are answered. */
  rule: Rule
  copiesOf(messageId: string): Copy[]
}

export interface SinkOptions {
  host?: string
  port?: number
  rule?: Rule
  extensions?: string[]
}

const usual: Record<Stage, string> = {
  banner: '220 sink.test ESMTP',
  hello: '250 sink.test',
  mail: '250 2.1.0 ok',
  rcpt: '250 2.1.5 ok',
  text: '354 go ahead',
  message: '250 2.0.0 kept',
}

/** Listens on `host` and `port` (127.0.0.1, any) until the scope ends, which closes every connection. */
export async function startSink(scope: Scope, options: SinkOptions = {}): Promise<Sink> {
  const { host = '127.0.0.1', port = 0, rule = () => null } = options
  const sockets = new Set<Socket>()
  const sink: Sink = {
    host,
    port,
    url: '',
    copies: [],
    connections: 0,
    open: 0,
    peers: [],
    rule,
    copiesOf: (messageId) => sink.copies.filter((copy) => copy.messageId === messageId),
  }
  const server = createServer({ noDelay: true }, (socket) => {
    sink.connections++
    sink.open++
    sink.peers.push(socket.remoteAddress ?? '')
    sockets.add(socket)
    socket.on('close', () => {
      sink.open--
      sockets.delete(socket)
    })
    void converse(new Conversation(sink, socket, options.extensions)).finally(() => socket.destroy())
  })
  server.listen(port, host)
  await once(server, 'listening')
  sink.port = (server.address() as { port: number }).port
  sink.url = `smtp://${host}:${sink.port}`
  scope.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(() => resolve()))
  })
  return sink
}

class Conversation {
  readonly wire: Wire
  readonly #sink: Sink
  readonly #extensions: string[]
  readonly peer: string
  hello = ''
  from = ''
  recipients: string[] = []
  chunks: Buffer[] = []

  constructor(
    sink: Sink,
    socket: Socket,
    extensions = ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'SIZE 52428800'],
  ) {
    this.#sink = sink
    this.#extensions = extensions
    this.wire = new Wire(socket)
    this.peer = socket.remoteAddress ?? ''
  }

  /** Answers by the rule or as usual. Returns whether the session continues, and with a positive or negative reply. */
  async answer(stage: Stage, command: string): Promise<'yes' | 'no' | 'over'> {
    const step = { stage, peer: this.peer, command, from: this.from, recipients: this.recipients }
    const reply = (await this.#sink.rule(step)) ?? usual[stage]
    if (reply === 'cut') return 'over'
    if (stage === 'message' && reply.startsWith('2')) this.#count()
    const lines = stage === 'hello' && reply.startsWith('2') ? [reply, ...this.#extensions] : [reply]
    await this.wire.write(wireReply(lines))
    return /^[23]/.test(reply) ? 'yes' : 'no'
  }

  forget(): void {
    this.from = ''
    this.recipients = []
    this.chunks = []
  }

  #count(): void {
    const raw = Buffer.concat(this.chunks)
    const messageId = messageIdOf(raw)
    const { from, peer, hello } = this
    for (const recipient of this.recipients)
      this.#sink.copies.push({ messageId, from, recipient, atMs: Date.now(), raw, peer, hello })
  }
}

function wireReply(lines: string[]): string {
  const code = lines[0]!.slice(0, 3)
  return lines
    .map((line, index) => (index === 0 ? line.slice(4) : line))
    .map((text, index) => `${code}${index < lines.length - 1 ? '-' : ' '}${text}\r\n`)
    .join('')
}

/** The Message-ID of a raw message with its angle brackets, or an empty string. */
function messageIdOf(raw: Buffer): string {
  const end = raw.indexOf('\r\n\r\n')
  const header = raw.subarray(0, end < 0 ? raw.length : end).toString('latin1')
  return /^message-id:\s*(<[^>]*>)/im.exec(header)?.[1] ?? ''
}

async function converse(peer: Conversation): Promise<void> {
  if ((await peer.answer('banner', '')) !== 'yes') return
  for (;;) {
    const command = await peer.wire.line()
    if (command === null) return
    const verb = command.slice(0, 4).toUpperCase()
    if (verb === 'QUIT') return void (await peer.wire.write('221 2.0.0 bye\r\n'))
    if ((await obey(peer, verb, command)) === 'over') return
  }
}

async function obey(peer: Conversation, verb: string, command: string): Promise<'yes' | 'no' | 'over'> {
  const path = /<((?:"(?:[^"\\]|\\.)*"|[^">])*)>/.exec(command)?.[1] ?? ''
  switch (verb) {
    case 'EHLO':
    case 'HELO':
      peer.forget()
      peer.hello = command.slice(5)
      return peer.answer('hello', command)
    case 'MAIL': {
      peer.forget()
      peer.from = path
      return peer.answer('mail', command)
    }
    case 'RCPT': {
      const answer = await peer.answer('rcpt', command)
      if (answer === 'yes') peer.recipients.push(path)
      return answer
    }
    case 'DATA':
      return takeText(peer, command)
    case 'BDAT':
      return takeChunk(peer, command)
    default:
      if (verb === 'RSET') peer.forget()
      await peer.wire.write(/RSET|NOOP/.test(verb) ? '250 2.0.0 ok\r\n' : '502 5.5.1 not here\r\n')
      return 'yes'
  }
}

async function takeText(peer: Conversation, command: string): Promise<'yes' | 'no' | 'over'> {
  if (peer.recipients.length === 0) {
    await peer.wire.write('554 5.5.1 no valid recipients\r\n')
    return 'no'
  }
  const begun = await peer.answer('text', command)
  if (begun !== 'yes') return begun
  const message = await peer.wire.message()
  if (!message) return 'over'
  peer.chunks = [message]
  return finish(peer, command)
}

async function takeChunk(peer: Conversation, command: string): Promise<'yes' | 'no' | 'over'> {
  const [, sizeBytes, last] = /^BDAT (\d+)( LAST)?$/i.exec(command) ?? []
  const chunk = sizeBytes === undefined ? null : await peer.wire.bytes(Number(sizeBytes))
  if (!chunk) return 'over'
  peer.chunks.push(chunk)
  if (peer.recipients.length === 0) {
    await peer.wire.write('503 5.5.1 no valid recipients\r\n')
    return 'no'
  }
  if (last) return finish(peer, command)
  await peer.wire.write('250 2.0.0 go on\r\n')
  return 'yes'
}

async function finish(peer: Conversation, command: string): Promise<'yes' | 'no' | 'over'> {
  const answer = await peer.answer('message', command)
  peer.forget()
  return answer
}
