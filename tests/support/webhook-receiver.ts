// A customer's webhook receiver: records every call, verifies it with the public libraries, and answers as set.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import type { Scope } from './until.ts'

export interface ReceivedCall {
  path: string
  headers: Record<string, string>
  raw: string
  body: { type: string; timestamp: string; data: Record<string, unknown> }
}

export type Answer = (response: ServerResponse, call: ReceivedCall, request: IncomingMessage) => void

export interface WebhookReceiver {
  port: number
  /** `http://127.0.0.1:port` and the path. */
  url(path?: string): string
  calls: ReceivedCall[]
  /** The calls to one path. */
  callsOf(path: string): ReceivedCall[]
  /** Sets the answer to calls of a path from now on. Default: 204. */
  answer(path: string, answer: Answer): void
  /** The number of connections so far. */
  connections(): number
}

export async function startReceiver(scope: Scope): Promise<WebhookReceiver> {
  const calls: ReceivedCall[] = []
  const answers = new Map<string, Answer>()
  let connections = 0
  const server = createServer(async (request, response) => {
    const call = await readCall(request).catch(() => null)
    if (!call) return
    calls.push(call)
    const answer = answers.get(call.path)
    if (answer) answer(response, call, request)
    else response.writeHead(204).end()
  })
  server.on('connection', () => connections++)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  scope.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    port,
    url: (path = '/') => `http://127.0.0.1:${port}${path}`,
    calls,
    callsOf: (path) => calls.filter((call) => call.path === path),
    answer: (path, answer) => void answers.set(path, answer),
    connections: () => connections,
  }
}

async function readCall(request: IncomingMessage): Promise<ReceivedCall> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const raw = Buffer.concat(chunks).toString()
  const headers = request.headers as Record<string, string>
  return { path: request.url ?? '', headers, raw, body: JSON.parse(raw) }
}

/** Both public libraries accept the call as genuine. They refuse a timestamp that is five minutes off. */
export function verifyCall(secret: string, { raw, headers }: ReceivedCall): void {
  assert.deepEqual(new StandardWebhook(secret).verify(raw, headers), JSON.parse(raw))
  new SvixWebhook(secret).verify(raw, headers)
}
