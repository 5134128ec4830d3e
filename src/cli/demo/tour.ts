// The guided tour: inboxes, a message with its reply and thread, webhooks, a bounce; each step a request with its answer.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { pollMs, type TourApi, TourFault, type TourRequest, type TourStep } from './api.ts'
import { walkBounce } from './bounce.ts'
import type { TourReceiver } from './receiver.ts'
import type { Schemas } from './schemas.ts'

type Inbox = Schemas['Inbox']
type Message = Schemas['Message']
type Acceptance = Schemas['Acceptance']

/** Runs the whole tour and yields each step when it is done. Throws a TourFault at the first failure. */
export async function* walkTour(api: TourApi, receiver: TourReceiver): AsyncGenerator<TourStep, void> {
  const ada = yield* openInbox(api, 'Ada', 'demo-ada')
  const ben = yield* openInbox(api, 'Ben', 'demo-ben')
  yield await receiver.open()
  const sent = yield* send(api, ada, ben)
  const arrived = yield* awaitArrival(api, ben, sent.message)
  yield await receiver.awaitCall('message.received', arrived.id)
  const reply = yield* answer(api, arrived)
  yield await showThread(api, sent.message, reply.message)
  yield await showEvents(api, sent.submission.id)
  yield await showSource(api, arrived)
  yield await downloadAttachment(api, arrived)
  yield* walkBounce(api, receiver, ada, ben)
  yield await showMetrics(api)
}

/** Each tour of a service uses the same two inboxes: an organization may open only a few on the managed domain, for life. */
async function* openInbox(api: TourApi, name: string, localPart: string): AsyncGenerator<TourStep, Inbox> {
  const { inboxes } = await api.get<Schemas['InboxList']>(`/v1/inboxes?q=${localPart}`)
  const known = inboxes.find((inbox) => inbox.localPart === localPart)
  if (known) {
    yield api.step(
      `${name} has an inbox from an earlier tour`,
      'The tour reuses it, because opening an inbox uses an allowance that deleting it does not give back.',
      { address: known.address, id: known.id },
    )
    return known
  }
  const request = { method: 'POST', path: '/v1/inboxes', body: { localPart, displayName: name } } as const
  const opened = await api.ask<Inbox>(request, 201)
  yield api.step(`${name} gets an inbox`, 'From now on the service accepts mail to this address.', {
    address: opened.address,
    id: opened.id,
  })
  return opened
}

const menu = {
  filename: 'menu.txt',
  contentType: 'text/plain',
  content: Buffer.from('Soup. Fish. Cake.\n').toString('base64'),
}

async function* send(api: TourApi, from: Inbox, to: Inbox): AsyncGenerator<TourStep, Acceptance> {
  const request: TourRequest = {
    method: 'POST',
    path: `/v1/inboxes/${from.id}/messages`,
    idempotencyKey: `demo-${randomUUID()}`,
    body: {
      to: [{ email: to.address, name: 'Ben' }],
      subject: 'Lunch on Friday?',
      text: 'Hello Ben,\n\nnoon, at the harbour? The menu is attached.\n\nAda',
      attachments: [menu],
    },
  }
  const accepted = await api.ask<Acceptance>(request, 202)
  const { message, submission } = accepted
  yield api.step(
    'Ada writes to Ben',
    '202: the message, its submission and its queue entry are on disk, in one commit.',
    {
      message: message.id,
      thread: message.threadId,
      submission: `${submission.id}, ${submission.status}`,
      'Message-ID': message.internetMessageId,
    },
  )
  const again = await api.ask<Acceptance>(request, 202)
  if (!again.replayed || again.message.id !== message.id)
    throw new TourFault('the same request with the same key was not a replay')
  yield api.step(
    'The same request again, as after a lost answer',
    'The idempotency key is the same, so the API returns the same message and sends nothing twice.',
    { message: again.message.id, replayed: 'true' },
  )
  return accepted
}

async function* awaitArrival(api: TourApi, inbox: Inbox, sent: Message): AsyncGenerator<TourStep, Message> {
  const arrived = await api.getUntil(
    `/v1/inboxes/${inbox.id}/messages?direction=inbound&limit=10`,
    'the message did not arrive',
    ({ messages }: Schemas['MessageList']) =>
      messages.find(({ internetMessageId }) => internetMessageId === sent.internetMessageId),
  )
  const { id, from, subject, extractedText = '', attachments = [], inboundSecurity } = arrived
  const files = attachments.map(({ filename, size, scanState }) => `${filename}, ${size} bytes, ${scanState}`)
  const step = api.step(
    'The message arrives at Ben’s inbox',
    'It came over SMTP to our own mail server, was stored before the 250, then parsed and put into a thread.',
    {
      message: id,
      from: from.email,
      subject,
      text: extractedText.replaceAll(/\s+/g, ' ').trim(),
      attachment: files.join('; '),
      peer: `${inboundSecurity?.smtp.remoteIp}, EHLO ${inboundSecurity?.smtp.helo}`,
    },
  )
  yield { ...step, answer: arrived }
  return arrived
}

async function* answer(api: TourApi, target: Message): AsyncGenerator<TourStep, Acceptance> {
  const request: TourRequest = {
    method: 'POST',
    path: `/v1/threads/${target.threadId}/replies`,
    idempotencyKey: `demo-${randomUUID()}`,
    body: { targetMessageId: target.id, text: 'Noon is fine. I will have the fish.\n\nBen' },
  }
  const accepted = await api.ask<Acceptance>(request, 202)
  const { id, subject, inReplyTo, references } = accepted.message
  if (inReplyTo !== target.internetMessageId || !references.includes(target.internetMessageId))
    throw new TourFault('the reply does not refer to the original message')
  yield api.step(
    'Ben replies',
    'Recipient, subject and references come from the message that he replies to.',
    { message: id, subject, 'In-Reply-To': inReplyTo, References: references.join(' ') },
  )
  return accepted
}

async function showThread(api: TourApi, sent: Message, reply: Message): Promise<TourStep> {
  const wanted = [sent.internetMessageId, reply.internetMessageId]
  const both = await api.getUntil(
    `/v1/threads/${sent.threadId}`,
    "the reply did not join Ada's thread",
    ({ messages }: Schemas['Thread']) => {
      const found = messages.filter(({ internetMessageId }) => wanted.includes(internetMessageId))
      return found.length === wanted.length ? found : undefined
    },
  )
  return api.step(
    'Ada’s thread has both messages',
    'The reply came over SMTP too. Its references assigned it to the thread.',
    both.map(({ direction, from, subject }) => [direction, `${from.email}: ${subject}`]),
  )
}

async function showEvents(api: TourApi, submissionId: string): Promise<TourStep> {
  const history = await api.getUntil(
    `/v1/submissions/${submissionId}/events`,
    'no delivery was recorded',
    ({ events }: Schemas['DeliveryEventList']) =>
      events.some(({ type }) => type === 'delivered') ? events : undefined,
  )
  return api.step(
    'Delivery events of Ada’s message',
    'Posthorn keeps every attempt, with the reply of the remote server.',
    history.map(({ type, at, remote, response }) => {
      const where = remote ? `  ${remote.host} [${remote.ip}] ${remote.tls ?? 'without TLS'}` : ''
      return [type, `${at.slice(11, 23)}${where}${response ? `  ${response}` : ''}`]
    }),
  )
}

async function showSource(api: TourApi, message: Message): Promise<TourStep> {
  const source = await api.get<string>(`/v1/messages/${message.id}/source`)
  return api.step(
    'The source of Ben’s message',
    'Below the trace fields that we added, the bytes are exactly as received.',
    listFields(source),
  )
}

const maxFieldLength = 100

/** The header fields of a mail, unfolded, with long values cut. */
export function listFields(source: string): [name: string, value: string][] {
  const [header = ''] = source.split('\r\n\r\n', 1)
  const lines = header.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')
  return lines.map((line) => {
    const colon = line.indexOf(':')
    const value = line.slice(colon + 1).trim()
    const cut = value.length > maxFieldLength ? `${value.slice(0, maxFieldLength)}…` : value
    return [line.slice(0, colon), cut]
  })
}

/** The scan begins within a second and takes a few milliseconds for small files. */
const scanTimeLimitMs = 3_000

const scanMeanings: Record<number, string> = {
  200: 'The scanner found it clean, so it can be downloaded.',
  409: 'The scanner did not find it clean, so it cannot be downloaded.',
  423: 'It has not been scanned, so it cannot be downloaded. Check that the clamd of POSTHORN_CLAMD answers.',
}

async function downloadAttachment(api: TourApi, message: Message): Promise<TourStep> {
  const path = `/v1/messages/${message.id}/attachments/${message.attachments?.[0]?.id}`
  const untilMs = performance.now() + scanTimeLimitMs
  const ask = () => api.ask<string | Schemas['ErrorBody']>({ method: 'GET', path }, 200, 409, 423)
  let body = await ask()
  while (api.last?.status === 423 && performance.now() < untilMs) {
    await pause(pollMs)
    body = await ask()
  }
  const excerpt =
    typeof body === 'string' ? { content: body.trim().replaceAll('\n', ' ') } : { [body.error]: body.message }
  return api.step('Ben’s attachment', scanMeanings[api.last!.status]!, excerpt)
}

async function showMetrics(api: TourApi): Promise<TourStep> {
  const { totals, latencyMs } = await api.get<Schemas['DeliveryMetrics']>('/v1/metrics/delivery?hours=24')
  const { accepted, delivered, bounced, received } = totals
  return api.step(
    'Delivery metrics',
    'The last 24 hours of the whole organization, counted in the same commits as the events.',
    [
      ...Object.entries({ accepted, delivered, bounced, received }).map(([name, count]): [string, string] => [
        name,
        `${count}`,
      ]),
      ['latency', `${latencyMs.p50} ms at the median, ${latencyMs.p95} ms at 95 %`],
    ],
  )
}
