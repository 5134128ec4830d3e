// The program that the tour's webhook calls: listens on loopback and verifies the signature of each call.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TourApi, type TourStep, waitFor } from './api.ts'
import type { Schemas } from './schemas.ts'

interface Call {
  id: string
  signature: string
  raw: string
  arrivedMs: number
}

const subscribedTypes = ['message.received', 'message.bounced']
const maxCalls = 1_000
const maxCallBytes = 1 << 20
/** The maximum age of a call, as Standard Webhooks recommends. It prevents later replays of a recorded call. */
const toleranceMs = 300_000

export class TourReceiver {
  readonly #api: TourApi
  readonly #server: Server
  /** Only calls with a valid signature. */
  readonly #calls: Call[] = []
  #refused = 0
  #webhook: { id: string; secret: string } | null = null

  constructor(api: TourApi) {
    this.#api = api
    this.#server = createServer(async (request, response) => {
      const raw = await readBody(request).catch(() => null) // the caller left
      response.writeHead(raw === null ? 413 : this.#take(request.headers, raw)).end()
    })
  }

  /** Registers the endpoint with the service. */
  async open(): Promise<TourStep> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const body = { url: this.#url(), eventTypes: subscribedTypes, description: 'posthorn demo' }
    const request = { method: 'POST', path: '/v1/webhooks', body } as const
    const webhook = await this.#api.ask<Schemas['WebhookWithSecret']>(request, 201)
    this.#webhook = webhook
    const secret = `${webhook.secret.slice(0, 10)}…`
    const step = this.#api.step(
      'A program subscribes to events',
      'It listens on this machine until the tour ends. The API shows the secret once; this is a part of it.',
      { webhook: webhook.id, secret },
    )
    return { ...step, answer: { ...webhook, secret } }
  }

  /** Returns the call of that type whose body names `subject`. Throws a TourFault if none comes. */
  async awaitCall(type: string, subject: string): Promise<TourStep> {
    const isIt = ({ raw }: Call) => raw.includes(subject) && JSON.parse(raw).type === type
    const call = await waitFor(
      () => this.#calls.find(isIt),
      () =>
        `no call of ${type} with a valid signature came (${this.#refused} were refused): does a node have the role webhooks?`,
    )
    const published = JSON.parse(call.raw)
    return {
      title: `The program receives ${type}`,
      meaning:
        'Posthorn calls its URL. The signature covers id, time and body; the program verifies it before it reads the body.',
      request: { method: 'POST', path: this.#url() },
      status: 204,
      answer: published,
      excerpt: [
        ['webhook-id', call.id],
        ['signature', `${call.signature}, valid`],
        ['body', `${call.raw.length} bytes about ${subject}`],
      ],
      durationMs: Math.max(0, call.arrivedMs - Date.parse(published.timestamp)),
    }
  }

  /** Deletes the endpoint and stops listening. */
  async close(): Promise<void> {
    const webhook = this.#webhook
    this.#webhook = null
    const path = `/v1/webhooks/${webhook?.id}`
    // If the service is gone, there is nothing to delete, and the tour has already reported it.
    if (webhook) await this.#api.ask({ method: 'DELETE', path }, 204, 404).catch(() => {})
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** Stores a call with a valid signature. Returns the status to answer with. */
  #take(headers: IncomingHttpHeaders, raw: string): number {
    const secret = this.#webhook?.secret
    if (!secret || !isGenuine(secret, headers, raw, Date.now())) {
      this.#refused++
      return 401
    }
    if (this.#calls.length >= maxCalls) return 503
    const [id, signature] = [String(headers['webhook-id']), String(headers['webhook-signature'])]
    this.#calls.push({ id, signature, raw, arrivedMs: Date.now() })
    return 204
  }

  #url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }
}

/** Null if the body is too large. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    sizeBytes += chunk.length
    if (sizeBytes > maxCallBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Whether a call was recently signed with this secret, as Standard Webhooks describes. */
export function isGenuine(secret: string, headers: IncomingHttpHeaders, raw: string, nowMs: number): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (!(Math.abs(nowMs - Number(timestamp) * 1000) <= toleranceMs)) return false
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.${raw}`).digest()
  // There are two signatures while an old secret is still valid.
  return String(signatures)
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
    .map((signature) => Buffer.from(signature.slice('v1,'.length), 'base64'))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected))
}
