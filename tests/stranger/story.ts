// The tour, and what it leaves out, by a program that knows the service only from types generated out of its OpenAPI document.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import createClient from 'openapi-fetch'
import type { components, paths } from './document.ts'
import { TourApi } from './tour/api.ts'
import { TourReceiver } from './tour/receiver.ts'
import { walkTour } from './tour/tour.ts'

type Inbox = components['schemas']['Inbox']
type Message = components['schemas']['Message']
type Refusal = components['schemas']['ErrorBody']
type StreamEvent = components['schemas']['StreamEvent']

const [baseUrl, key, sendingDomain, receiver] = process.argv.slice(2)
if (!baseUrl || !key || !sendingDomain || !receiver)
  throw new Error('usage: story.js BASE_URL API_KEY SENDING_DOMAIN WEBHOOK_URL')
const client = createClient<paths>({ baseUrl, headers: { 'x-api-key': key } })

interface Answer<Body> {
  data?: Body
  error?: Refusal
  response: Response
}

/** The body of an answer that must be a success. */
function want<Body>(status: number, { data, error, response }: Answer<Body>): Body {
  if (response.status !== status || data === undefined)
    throw new Error(`${response.url}: ${status} was wanted, ${response.status} ${error?.error} came`)
  return data
}

/** Holds an answer without a body to its status. */
function done(status: number, { error, response }: Answer<undefined>): void {
  if (response.status !== status)
    throw new Error(`${response.url}: ${status} was wanted, ${response.status} ${error?.error} came`)
}

function check(what: string, holds: boolean): void {
  if (!holds) throw new Error(`it does not hold: ${what}`)
  console.log(`✔ ${what}`)
}

async function until<Found>(what: string, look: () => Promise<Found | undefined>): Promise<Found> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await pause(50)) {
    const found = await look()
    if (found !== undefined) return found
  }
  throw new Error(`waited in vain for ${what}`)
}

const once = () => ({ 'idempotency-key': `story-${randomUUID()}` })

async function followSubmission(submissionId: string): Promise<void> {
  const path = { submissionId }
  await until('the delivery', async () => {
    const { status } = want(200, await client.GET('/v1/submissions/{submissionId}', { params: { path } }))
    return status === 'delivered' ? status : undefined
  })
  const listed = await client.GET('/v1/submissions/{submissionId}/events', { params: { path } })
  const types = want(200, listed).events.map(({ type }) => type)
  check('its events tell the way', types.at(0) === 'accepted' && types.includes('delivered'))
}

async function sendThroughDomain(domainName: string): Promise<void> {
  const body = {
    from: { email: `tables@${domainName}`, name: 'The Green Table' },
    to: [{ email: 'guest@far.test' }],
    subject: 'Your table for two',
    html: '<p>Friday at eight is yours.</p>',
    headers: { 'x-campaign': 'confirmations' },
    purpose: 'transactional' as const,
  }
  const { id, status } = want(202, await client.POST('/v1/send', { params: { header: once() }, body }))
  check('a message through a domain is accepted', status === 'pending')
  await followSubmission(id)
}

async function registerDomain(): Promise<void> {
  const domain = want(201, await client.POST('/v1/domains', { body: { domain: 'story.test' } }))
  check(
    'a domain shows what to publish',
    domain.records.some(({ purpose }) => purpose === 'ownership'),
  )
  const path = { domainId: domain.id }
  const { checks } = want(200, await client.POST('/v1/domains/{domainId}/verify', { params: { path } }))
  check(
    'a check says what is missing',
    checks.some(({ status }) => status === 'missing'),
  )
  const zone = await client.GET('/v1/domains/{domainId}/zone', { params: { path }, parseAs: 'text' })
  check('its zone can be printed', want(200, zone).includes(' IN TXT '))
  done(204, await client.DELETE('/v1/domains/{domainId}', { params: { path } }))
}

async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    const lines = (text + decoder.decode(chunk, { stream: true })).split('\n')
    text = lines.pop()!
    for (const line of lines)
      if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length)) as StreamEvent
  }
}

/** Whom an event is about: its type says what its data holds. */
function addressOf(event: StreamEvent): string | null {
  switch (event.type) {
    case 'suppression.created':
      return event.data.suppression.email
    case 'message.received':
      return event.data.message.from.email
    case 'message.sent':
    case 'message.delivered':
      return event.data.event.recipient
    case 'domain.verified':
    case 'stream.reset':
      return null
    default:
      return event.timestamp === '' ? null : event.type
  }
}

async function followStream(): Promise<void> {
  const ending = new AbortController()
  const stream = await client.GET('/v1/events', { parseAs: 'stream', signal: ending.signal })
  const body = { email: 'told@far.test' }
  want(201, await client.POST('/v1/suppressions', { body }))
  const events = want(200, stream)
  if (!events) throw new Error('the stream has no body')
  for await (const event of readEvents(events))
    if (addressOf(event) === body.email) {
      check('the stream tells of it', event.type === 'suppression.created')
      break
    }
  ending.abort()
  const { suppressions } = want(
    200,
    await client.GET('/v1/suppressions', { params: { query: { email: 'TOLD@far.test' } } }),
  )
  check('an address is found among the suppressed', suppressions[0]?.reason === 'manual')
  done(204, await client.DELETE('/v1/suppressions', { body }))
}

async function suppress(ada: Inbox): Promise<void> {
  const body = { email: 'nobody@far.test' }
  const { reason } = want(201, await client.POST('/v1/suppressions', { body }))
  check('an address is suppressed', reason === 'manual')
  const refused = await client.POST('/v1/inboxes/{inboxId}/messages', {
    params: { path: { inboxId: ada.id }, header: once() },
    body: { to: [body], subject: 'Hello', text: 'Hello', metadata: { table: 4 } },
  })
  check('nothing is sent to it', refused.error?.error === 'all_recipients_suppressed')
  done(204, await client.DELETE('/v1/suppressions', { body }))
  const { suppressions } = want(200, await client.GET('/v1/suppressions'))
  check('it is let go', suppressions.length === 0)
}

async function validate(): Promise<void> {
  const { verdict, reason } = want(
    200,
    await client.POST('/v1/validate', { body: { email: 'ada@gone.test' } }),
  )
  check('an address is judged', verdict === 'undeliverable' && reason === 'domain_not_found')
  const bulk = await client.POST('/v1/validate/bulk', { body: { emails: ['nonsense', 'ada@far.test'] } })
  const { results } = want(200, bulk)
  check('two are judged in their order', results[0]?.reason === 'invalid_syntax' && results.length === 2)
}

async function hook(url: string): Promise<void> {
  const body = { url, eventTypes: ['message.received' as const, 'message.bounced' as const] }
  const { id, secret } = want(201, await client.POST('/v1/webhooks', { body }))
  const { webhooks } = want(200, await client.GET('/v1/webhooks'))
  check('a webhook is listed, its secret shown once', webhooks.length === 1 && secret.startsWith('whsec_'))
  done(204, await client.DELETE('/v1/webhooks/{webhookId}', { params: { path: { webhookId: id } } }))
}

async function turnPages(): Promise<void> {
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const query = { limit: 1, ...(cursor !== undefined && { cursor }) }
    const page = want(200, await client.GET('/v1/inboxes', { params: { query } }))
    seen.push(...page.inboxes.map(({ id }) => id))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  check('a list is read page by page', new Set(seen).size === 2 && seen.length === 2)
}

async function beRefused(): Promise<void> {
  const params = { path: { inboxId: 'inb_000000000000000000000000' } }
  const { error, response } = await client.GET('/v1/inboxes/{inboxId}', { params })
  if (error === undefined) throw new Error('it was to be refused')
  switch (error.error) {
    case 'not_found':
      check('what is not there is not found', response.status === 404 && error.message !== '')
      break
    case 'inbox_not_allowed':
    case 'insufficient_scope':
      throw new Error('the key may not do that')
    default:
      throw new Error(`it was to be not found, not ${error.error}`)
  }
}

/** The tour, whose own checks end it with a fault. */
async function walk(): Promise<void> {
  const api = new TourApi(baseUrl!, key!)
  const tour = new TourReceiver(api)
  try {
    for await (const { title } of walkTour(api, tour)) console.log(`✔ ${title}`)
  } finally {
    await tour.close()
  }
}

/** An inbox of the tour, and the message that it is about. */
async function find(q: string, direction: 'inbound' | 'outbound'): Promise<[Inbox, Message]> {
  const { inboxes } = want(200, await client.GET('/v1/inboxes', { params: { query: { q } } }))
  const path = { inboxId: inboxes[0]!.id }
  const inbox = want(200, await client.GET('/v1/inboxes/{inboxId}', { params: { path } }))
  check(`an inbox of the tour, ${q}`, inbox.address === inboxes[0]!.address && inbox.domainId === null)
  const query = { direction, limit: 10 }
  const page = await client.GET('/v1/inboxes/{inboxId}/messages', { params: { path, query } })
  const message = want(200, page).messages.find(({ subject }) => subject === 'Lunch on Friday?')
  if (!message) throw new Error('its message is missing')
  return [inbox, message]
}

async function download({ id, internetMessageId, attachments = [] }: Message): Promise<void> {
  const path = { messageId: id }
  const source = await client.GET('/v1/messages/{messageId}/source', { params: { path }, parseAs: 'text' })
  check('its source is there', want(200, source).includes(internetMessageId))
  const [file] = attachments
  if (!file) throw new Error('the attachment is missing')
  const bytes = await client.GET('/v1/messages/{messageId}/attachments/{attachmentId}', {
    params: { path: { messageId: id, attachmentId: file.id } },
    parseAs: 'arrayBuffer',
  })
  // Without a scanner an attachment is not given out; its code is one of those documented for this operation.
  if (bytes.error?.error === 'attachment_not_scanned')
    check('an attachment waits to be scanned', bytes.response.status === 423)
  else check('an attachment is downloaded', new Uint8Array(want(200, bytes)).length === file.size)
}

async function tell(): Promise<void> {
  const { apiKey, platformLimits } = want(200, await client.GET('/v1/me'))
  check('a key knows what it may', apiKey.scopes.includes('*') && platformLimits.recipientsPerMessage > 0)
  await walk()
  const [ada, sent] = await find('demo-ada', 'outbound')
  const [, arrived] = await find('demo-ben', 'inbound')
  check('what came is not trusted', arrived.inboundSecurity?.trust === 'untrusted')
  await download(arrived)
  await sendThroughDomain(sendingDomain!)
  await registerDomain()
  await followStream()
  await suppress(ada)
  await validate()
  await hook(receiver!)
  await turnPages()
  await beRefused()
  const metrics = await client.GET('/v1/metrics/delivery', { params: { query: { hours: 24 } } })
  check('metrics count it', want(200, metrics).totals.delivered >= 3)
  done(204, await client.DELETE('/v1/messages/{messageId}', { params: { path: { messageId: sent.id } } }))
  done(204, await client.DELETE('/v1/inboxes/{inboxId}', { params: { path: { inboxId: ada.id } } }))
  console.log('the story is told')
}

await tell()
