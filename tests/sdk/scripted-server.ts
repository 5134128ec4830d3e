// A server on loopback that follows the script of a scenario of sdk/scenarios.json.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

export interface Step {
  request: string
  query?: Record<string, string>
  headers?: Record<string, string | null>
  json?: unknown
  answer?: Answer
  reset?: 'before' | 'middle'
  hang?: boolean
  pages?: number
  perPage?: number
  items?: string
  stream?: string[]
}

interface Answer {
  status?: number
  headers?: Record<string, string>
  json?: unknown
  text?: string
  base64?: string
}

export interface Got {
  method: string
  path: string
  query: Record<string, string>
  headers: IncomingMessage['headers']
  json: unknown
}

/** Records what it got, and answers by the next step. A request after the last step gets 599. */
export class ScriptedServer {
  readonly base: string
  readonly got: Got[] = []
  readonly steps: Step[]
  readonly #server

  private constructor(steps: Step[], server: ReturnType<typeof createServer>) {
    this.steps = steps.flatMap(unroll)
    this.#server = server
    this.base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async start(steps: Step[]): Promise<ScriptedServer> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const scripted = new ScriptedServer(steps, server)
    server.on('request', (request, response) => void scripted.#serve(request, response))
    return scripted
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece)
    const { pathname, searchParams } = new URL(request.url!, this.base)
    const text = Buffer.concat(pieces).toString()
    const step = this.steps[this.got.length]
    this.got.push({
      method: request.method!,
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: request.headers,
      json: text === '' ? undefined : JSON.parse(text),
    })
    if (!step) return void response.writeHead(599).end()
    if (!step.hang) await answer(step, response)
  }
}

/** Makes one step of each page of a step with pages. */
function unroll(step: Step): Step[] {
  const { pages, perPage = 0, items = '' } = step
  if (pages === undefined) return [step]
  return Array.from({ length: pages }, (_, page) => {
    const listed = Array.from({ length: perPage }, (_, index) => ({
      id: `item-${page * perPage + index + 1}`,
    }))
    const nextCursor = page === pages - 1 ? null : `page-${page + 2}`
    return { request: step.request, answer: { json: { [items]: listed, nextCursor } } }
  })
}

async function answer({ answer = {}, reset, stream }: Step, response: ServerResponse): Promise<void> {
  const socket = response.socket as Socket
  if (reset === 'before') return void socket.resetAndDestroy()
  if (stream) return await write(stream, reset, response)
  const { status = 200, headers = {}, json, text, base64 } = answer
  const body = Buffer.from(
    base64 ?? text ?? (json === undefined ? '' : JSON.stringify(json)),
    base64 === undefined ? 'utf8' : 'base64',
  )
  const type = json === undefined ? {} : { 'content-type': 'application/json' }
  const length = status === 204 ? {} : { 'content-length': body.length }
  response.writeHead(status, { ...type, ...length, ...headers })
  if (reset !== 'middle') return void response.end(body)
  // A reset could discard bytes that the client has not read yet.
  response.write(body.subarray(0, body.length / 2), () => socket.end())
}

async function write(texts: string[], reset: Step['reset'], response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const text of texts) await new Promise((resolve) => response.write(text, resolve))
  if (reset === 'middle') (response.socket as Socket).end()
  else response.end()
}
