// Forwards events to a program on this machine as signed webhook calls, so that it can be tried without a public address.
import { randomBytes } from 'node:crypto'
import type { StreamEvent } from '../posthorn.ts'
import { type Command, UsageError } from './command.ts'
import { table } from './terminal.ts'

const timeoutMs = 15_000

export const listenCommand: Command = {
  words: 'webhooks listen',
  operands: 'URL',
  summary: 'Forward every event to a URL on this machine, as a webhook call, until it is interrupted',
  options: {
    secret: { type: 'string', help: 'signs the calls. Default: a new one, which is printed' },
    event: { type: 'string', multiple: true, help: 'only events of this type' },
    after: { type: 'string', help: 'the id of the last event that was forwarded. Default: from now on' },
  },
  async run(session, given) {
    const url = new URL(given.positionals[0]!)
    const secret = given.text('secret') ?? `whsec_${randomBytes(32).toString('base64')}`
    if (!secret.startsWith('whsec_')) throw new UsageError('--secret must begin with whsec_.')
    session.note(`Forwarding to ${url.href}. The secret is ${secret}`)
    const [types, after] = [given.texts('event'), given.text('after')]
    const client = await session.client()
    const options = { signal: session.signal, ...(after !== null && { lastEventId: after }) }
    for await (const event of client.events.watch(options)) {
      if (types.length > 0 && !types.includes(event.type)) continue
      const status = await forward(url, secret, event)
      await session.print(
        { id: event.id, type: event.type, status },
        table([[event.type, status, event.id ?? '']]),
      )
    }
  },
}

/** Returns the status of the answer, or why there was none. */
async function forward(url: URL, secret: string, { id, ...event }: StreamEvent): Promise<string> {
  const webhookId = id?.split('.')[0] ?? event.timestamp
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const body = JSON.stringify(event)
  const headers = {
    'content-type': 'application/json',
    'webhook-id': webhookId,
    'webhook-timestamp': timestamp,
    'webhook-signature': await sign(secret, `${webhookId}.${timestamp}.${body}`),
  }
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
    await response.arrayBuffer()
    return String(response.status)
  } catch (error) {
    // The program on this machine may be stopped while its author changes it.
    return (error as Error).message
  }
}

async function sign(secret: string, text: string): Promise<string> {
  const raw = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const key = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  const signature = await crypto.subtle.sign('HMAC', key, Buffer.from(text))
  return `v1,${Buffer.from(signature).toString('base64')}`
}
