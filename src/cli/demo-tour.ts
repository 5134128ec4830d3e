// The guided tour: two inboxes, a message, its reply and their thread, each step a request with its answer and its time.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'

export interface TourRequest {
  method: 'GET' | 'POST'
  path: string
  idempotencyKey?: string
  body?: object
}

export interface Step {
  title: string
  /** What there is to see in the answer, in a sentence or two. */
  meaning: string
  request: TourRequest
  status: number
  /** JSON, or text where the answer is a mail. */
  answer: unknown
  /** What a person reads of the answer: names and values. */
  excerpt: [name: string, value: string][]
  durationMs: number
}

/** The tour cannot go on; the message is the line to print. */
export class TourFault extends Error {}

interface Inbox {
  id: string
  localPart: string
  address: string
}

interface Message {
  id: string
  threadId: string
  direction: 'inbound' | 'outbound'
  internetMessageId: string
  inReplyTo: string | null
  references: string[]
  from: { email: string }
  subject: string
  extractedText?: string
  attachments?: { filename: string; size: number; scanState: string }[]
  inboundSecurity?: { smtp: { remoteIp: string; helo: string } }
}

interface Acceptance {
  message: Message
  submission: { id: string; status: string }
  replayed: boolean
}

interface DeliveryEvent {
  type: string
  at: string
  recipient: string | null
  remote: { host: string; ip: string; tls: string | null } | null
  response: string | null
}

interface Answer<Body> {
  status: number
  body: Body
  durationMs: number
}

const requestLimitMs = 15_000
const arrivalLimitMs = 30_000
const pollMs = 40

/** Asks the API of one service with one key; whatever is not an answer is a TourFault. */
export class TourApi {
  readonly #http: string
  readonly #secret: string

  constructor(http: string, secret: string) {
    this.#http = http
    this.#secret = secret
  }

  /** The answer, whose status must be `status`. */
  async ask<Body>(request: TourRequest, status: number): Promise<Answer<Body>> {
    const startedMs = performance.now()
    const response = await this.#fetch(request)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    const answer = {
      status: response.status,
      body: isJson ? JSON.parse(text) : text,
      durationMs: performance.now() - startedMs,
    }
    if (answer.status !== status)
      throw new TourFault(
        `${request.method} ${request.path} was answered ${answer.status} ${text.slice(0, 500)}`,
      )
    return answer
  }

  /** Asks again and again until the answer has what `find` looks for; the time is that of the whole wait. */
  async askUntil<Body, Found>(request: TourRequest, what: string, find: (body: Body) => Found | undefined) {
    const startedMs = performance.now()
    for (;;) {
      const answer = await this.ask<Body>(request, 200)
      const found = find(answer.body)
      const durationMs = performance.now() - startedMs
      if (found !== undefined) return { ...answer, durationMs, found }
      if (durationMs > arrivalLimitMs)
        throw new TourFault(
          `${what} within ${arrivalLimitMs / 1000} s: "posthorn queue list" tells what waits`,
        )
      await pause(pollMs)
    }
  }

  async #fetch({ method, path, idempotencyKey, body }: TourRequest): Promise<Response> {
    const headers = {
      'x-api-key': this.#secret,
      ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
      ...(body && { 'content-type': 'application/json' }),
    }
    const signal = AbortSignal.timeout(requestLimitMs)
    try {
      return await fetch(this.#http + path, {
        method,
        headers,
        signal,
        body: body ? JSON.stringify(body) : null,
      })
    } catch (error) {
      // fetch puts what went wrong on the wire into the cause.
      const { message } = ((error as Error).cause ?? error) as Error
      throw new TourFault(`${method} ${this.#http}${path} had no answer: ${message}`)
    }
  }
}

/** Walks the whole tour, handing over each step once it is done; throws a TourFault at the first that fails. */
export async function* walkTour(api: TourApi): AsyncGenerator<Step, void> {
  const ada = yield* openInbox(api, 'Ada', 'demo-ada')
  const ben = yield* openInbox(api, 'Ben', 'demo-ben')
  const sent = yield* send(api, ada, ben)
  const arrived = yield* awaitArrival(api, ben, sent.message)
  const reply = yield* answer(api, arrived)
  yield* awaitThread(api, sent.message, reply.message)
  yield* showEvents(api, sent.submission.id)
  yield* showSource(api, arrived)
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

function outcome({
  status,
  body,
  durationMs,
}: Answer<unknown>): Pick<Step, 'status' | 'answer' | 'durationMs'> {
  return { status, answer: body, durationMs }
}

function describeInbox({ id, address }: Inbox): [string, string][] {
  return [
    ['address', address],
    ['id', id],
  ]
}
