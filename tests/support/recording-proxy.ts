// A proxy between a client and the service that records each request with its answer.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from './until.ts'

export interface Call {
  method: string
  /** With the query. */
  path: string
  headers: IncomingMessage['headers']
  body: string
  /** 0 until the service answers. */
  status: number
  /** Empty for a stream. */
  answer: string
}

export interface RecordingProxy {
  url: string
  /** In the order of the requests. */
  calls: Call[]
}

const own = '/-/'

interface Hooks {
  /** Answers a request for `/-/…`, which does not reach the service. Its path is the argument, without that. */
  own(path: string): Promise<void>
  /** Runs before the client gets the body of the answer. */
  answered(call: Call): void | Promise<void>
}

export async function startRecordingProxy(scope: Scope, to: string, hooks: Hooks): Promise<RecordingProxy> {
  const calls: Call[] = []
  const pass = async (from: IncomingMessage, back: ServerResponse) => {
    const { method = '', url: path = '', headers } = from
    if (path.startsWith(own)) {
      await hooks.own(path.slice(own.length))
      return void back.writeHead(204).end()
    }
    const call: Call = { method, path, headers, body: '', status: 0, answer: '' }
    calls.push(call)
    const service = request(new URL(path, to), { method, headers })
    // A connection can fail later than its answer begins, when `once` no longer listens.
    service.on('error', () => back.destroy())
    const sent: Buffer[] = []
    from.on('data', (piece: Buffer) => sent.push(piece))
    // A character may be split between two pieces.
    from.on('end', () => (call.body = Buffer.concat(sent).toString()))
    from.pipe(service)
    back.on('close', () => service.destroy())
    const [answer] = (await once(service, 'response')) as [IncomingMessage]
    call.status = answer.statusCode!
    back.writeHead(call.status, answer.headers)
    back.flushHeaders()
    const isStream = answer.headers['content-type']?.startsWith('text/event-stream')
    const pieces: Buffer[] = []
    for await (const piece of answer) {
      if (isStream) back.write(piece)
      else pieces.push(piece)
    }
    const whole = Buffer.concat(pieces)
    call.answer = whole.toString()
    await hooks.answered(call)
    back.end(whole)
  }
  const server = createServer((from, back) => void pass(from, back).catch(() => back.destroy()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  scope.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls }
}
