// The guided tour: inboxes, a message with its reply and thread, webhooks, a bounce; each step a request with its answer.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  type Acceptance,
  type DeliveryEvent,
  type Inbox,
  type Message,
  outcome,
  pollMs,
  type Step,
  type TourApi,
  TourFault,
  type TourRequest,
} from './api.ts'
import { walkBounce } from './bounce.ts'
import type { TourReceiver } from './receiver.ts'

/** Walks the whole tour, handing over each step once it is done; throws a TourFault at the first that fails. */
export async function* walkTour(
  api: TourApi,
  receiver: TourReceiver,
  { scans }: { scans: boolean },
): AsyncGenerator<Step, void> {
  const ada = yield* openInbox(api, 'Ada', 'demo-ada')
  const ben = yield* openInbox(api, 'Ben', 'demo-ben')
  yield* receiver.open()
  const sent = yield* send(api, ada, ben)
  const arrived = yield* awaitArrival(api, ben, sent.message)
  yield* receiver.awaitCall('message.received', arrived.id)
  const reply = yield* answer(api, arrived)
  yield* awaitThread(api, sent.message, reply.message)
  yield* showEvents(api, sent.submission.id)
  yield* showSource(api, arrived)
  yield* downloadAttachment(api, arrived, scans ? scanPatienceMs : 0)
  yield* walkBounce(api, receiver, ada, ben)
  yield* showMetrics(api)
}

/** Each tour of a service uses the same two inboxes: an organization opens a few on the managed domain, for life. */
async function* openInbox(api: TourApi, name: string, localPart: string): AsyncGenerator<Step, Inbox> {
  const search = { method: 'GET', path: `/v1/inboxes?q=${localPart}` } as const
  const earlier = await api.ask<{ inboxes: Inbox[] }>(search, 200)
  const known = earlier.body.inboxes.find((inbox) => inbox.localPart === localPart)
  if (known) {
    yield {
      title: `${name}'s inbox is there from an earlier tour`,
      meaning: 'It is used again, because opening one costs an allowance that deleting does not give back.',
      request: search,
      ...outcome(earlier),
      excerpt: describeInbox(known),
    }
    return known
  }
  const request = { method: 'POST', path: '/v1/inboxes', body: { localPart, displayName: name } } as const
  const opened = await api.ask<Inbox>(request, 201)
  yield {
    title: `${name} gets an inbox`,
    meaning: 'From now on mail to this address is taken.',
    request,
    ...outcome(opened),
    excerpt: describeInbox(opened.body),
  }
  return opened.body
}

async function* send(api: TourApi, from: Inbox, to: Inbox): AsyncGenerator<Step, Acceptance> {
  const request: TourRequest = {
    method: 'POST',
    path: `/v1/inboxes/${from.id}/messages`,
    idempotencyKey: `demo-${randomUUID()}`,
    body: {
      to: [{ email: to.address, name: 'Ben' }],
      subject: 'Lunch on Friday?',
      text: 'Hello Ben,\n\nnoon, at the harbour? The menu is attached.\n\nAda',
      attachments: [
        {
          filename: 'menu.txt',
          contentType: 'text/plain',
          content: Buffer.from('Soup. Fish. Cake.\n').toString('base64'),
        },
      ],
    },
  }
  const accepted = await api.ask<Acceptance>(request, 202)
  const { message, submission } = accepted.body
  yield {
    title: 'Ada writes to Ben',
    meaning: '202: the message, its submission and its place in the queue are on disk, in one commit.',
    request,
    ...outcome(accepted),
    excerpt: [
      ['message', message.id],
      ['thread', message.threadId],
      ['submission', `${submission.id}, ${submission.status}`],
      ['Message-ID', message.internetMessageId],
    ],
  }
  const again = await api.ask<Acceptance>(request, 202)
  if (!again.body.replayed || again.body.message.id !== message.id)
    throw new TourFault('the same request with the same key was not a replay')
  yield {
    title: 'The same request once more, as after a lost answer',
    meaning: 'The same idempotency key: the same message, and nothing is sent twice.',
    request,
    ...outcome(again),
    excerpt: [
      ['message', again.body.message.id],
      ['replayed', 'true'],
    ],
  }
  return accepted.body
}

async function* awaitArrival(api: TourApi, inbox: Inbox, sent: Message): AsyncGenerator<Step, Message> {
  const request = {
    method: 'GET',
    path: `/v1/inboxes/${inbox.id}/messages?direction=inbound&limit=10`,
  } as const
  const isIt = ({ internetMessageId }: Message) => internetMessageId === sent.internetMessageId
  const find = ({ messages }: { messages: Message[] }) => messages.find(isIt)
  const arrival = await api.askUntil(request, 'the message did not arrive', find)
  const { id, from, subject, extractedText = '', attachments = [], inboundSecurity } = arrival.found
  const files = attachments.map(({ filename, size, scanState }) => `${filename}, ${size} bytes, ${scanState}`)
  yield {
    title: 'It arrives at Ben’s',
    meaning:
      'It went over SMTP to our own mail server, was kept before the 250, then parsed and put into a thread.',
    request,
    ...outcome(arrival),
    answer: arrival.found,
    excerpt: [
      ['message', id],
      ['from', from.email],
      ['subject', subject],
      ['text', extractedText.replaceAll(/\s+/g, ' ').trim()],
      ['attachment', files.join('; ')],
      ['came from', `${inboundSecurity?.smtp.remoteIp}, which said EHLO ${inboundSecurity?.smtp.helo}`],
    ],
  }
  return arrival.found
}

async function* answer(api: TourApi, target: Message): AsyncGenerator<Step, Acceptance> {
  const request: TourRequest = {
    method: 'POST',
    path: `/v1/threads/${target.threadId}/replies`,
    idempotencyKey: `demo-${randomUUID()}`,
    body: { targetMessageId: target.id, text: 'Noon is fine. I will have the fish.\n\nBen' },
  }
  const accepted = await api.ask<Acceptance>(request, 202)
  const { id, subject, inReplyTo, references } = accepted.body.message
  if (inReplyTo !== target.internetMessageId || !references.includes(target.internetMessageId)) {
    throw new TourFault('the reply does not name the message that it answers')
  }
  yield {
    title: 'Ben answers',
    meaning: 'To whom, the subject and the ancestry follow from the message that is answered.',
    request,
    ...outcome(accepted),
    excerpt: [
      ['message', id],
      ['subject', subject],
      ['In-Reply-To', inReplyTo],
      ['References', references.join(' ')],
    ],
  }
  return accepted.body
}

async function* awaitThread(api: TourApi, sent: Message, reply: Message): AsyncGenerator<Step, void> {
  const request = { method: 'GET', path: `/v1/threads/${sent.threadId}` } as const
  const wanted = [sent.internetMessageId, reply.internetMessageId]
  const find = ({ messages }: { messages: Message[] }) => {
    const found = messages.filter(({ internetMessageId }) => wanted.includes(internetMessageId))
    return found.length === wanted.length ? found : undefined
  }
  const thread = await api.askUntil(request, "the reply did not join Ada's thread", find)
  yield {
    title: 'Ada’s thread has both',
    meaning: 'The reply came by SMTP as well; its references led it to the thread.',
    request,
    ...outcome(thread),
    excerpt: thread.found.map(({ direction, from, subject }) => [direction, `${from.email}: ${subject}`]),
  }
}

async function* showEvents(api: TourApi, submissionId: string): AsyncGenerator<Step, void> {
  const request = { method: 'GET', path: `/v1/submissions/${submissionId}/events` } as const
  const find = ({ events }: { events: DeliveryEvent[] }) =>
    events.some(({ type }) => type === 'delivered') ? events : undefined
  const history = await api.askUntil(request, 'no delivery was recorded', find)
  const describe = ({ at, remote, response }: DeliveryEvent) => {
    const where = remote ? `  ${remote.host} [${remote.ip}] ${remote.tls ?? 'without TLS'}` : ''
    return `${at.slice(11, 23)}${where}${response ? `  ${response}` : ''}`
  }
  yield {
    title: 'What happened to Ada’s message',
    meaning: 'Every attempt is kept, with the words of the server at the other end.',
    request,
    ...outcome(history),
    excerpt: history.found.map((event) => [event.type, describe(event)]),
  }
}

async function* showSource(api: TourApi, message: Message): AsyncGenerator<Step, void> {
  const request = { method: 'GET', path: `/v1/messages/${message.id}/source` } as const
  const source = await api.ask<string>(request, 200)
  yield {
    title: 'Ben’s message as it stood on the wire',
    meaning: 'Above the trace lines that we added, the bytes are those that came.',
    request,
    ...outcome(source),
    excerpt: listFields(source.body),
  }
}

const maxFieldLength = 100

/** The header fields of a mail, unfolded, long ones cut. */
export function listFields(source: string): [name: string, value: string][] {
  const [header = ''] = source.split('\r\n\r\n', 1)
  const lines = header.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n')
  return lines.map((line) => {
    const colon = line.indexOf(':')
    const value = line.slice(colon + 1).trim()
    return [
      line.slice(0, colon),
      value.length > maxFieldLength ? `${value.slice(0, maxFieldLength)}…` : value,
    ]
  })
}

/** clamd is asked within a second, and answers small files in a few milliseconds. */
const scanPatienceMs = 3_000

async function* downloadAttachment(
  api: TourApi,
  message: Message,
  patienceMs: number,
): AsyncGenerator<Step, void> {
  const path = `/v1/messages/${message.id}/attachments/${message.attachments?.[0]?.id}`
  const request = { method: 'GET', path } as const
  const untilMs = performance.now() + patienceMs
  const ask = () => api.ask<string | Refusal>(request, 200, 409, 423)
  let download = await ask()
  while (download.status === 423 && performance.now() < untilMs) {
    await pause(pollMs)
    download = await ask()
  }
  const { body, status } = download
  yield {
    title: 'Ben’s attachment',
    meaning: scanMeanings[status]!,
    request,
    ...outcome(download),
    excerpt:
      typeof body === 'string'
        ? [['content', body.trim().replaceAll('\n', ' ')]]
        : [[body.error, body.message]],
  }
}

interface Refusal {
  error: string
  message: string
}

const scanMeanings: Record<number, string> = {
  200: 'It was scanned and found clean, so it is given out.',
  409: 'The scanner did not find it clean, so nobody gets it.',
  423: 'Nobody has scanned it, so nobody gets it: set POSTHORN_CLAMD to the clamd that is to look.',
}

interface Metrics {
  totals: Record<string, number>
  latencyMs: { p50: number | null; p95: number | null }
}

async function* showMetrics(api: TourApi): AsyncGenerator<Step, void> {
  const request = { method: 'GET', path: '/v1/metrics/delivery?hours=24' } as const
  const metrics = await api.ask<Metrics>(request, 200)
  const { totals, latencyMs } = metrics.body
  const shown = ['accepted', 'delivered', 'bounced', 'received']
  yield {
    title: 'What became of it all, in numbers',
    meaning:
      'Of this day and of the whole organization. They were counted in the commits that made the facts.',
    request,
    ...outcome(metrics),
    excerpt: [
      ...shown.map((name): [string, string] => [name, String(totals[name])]),
      ['to delivery', `${latencyMs.p50} ms at the median, ${latencyMs.p95} ms at 95 %`],
    ],
  }
}

function describeInbox({ id, address }: Inbox): [string, string][] {
  return [
    ['address', address],
    ['id', id],
  ]
}
