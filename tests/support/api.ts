// A small typed client of the HTTP API, as a customer would write it from the specification.

export interface Answer<Body> {
  status: number
  headers: Headers
  body: Body
}

export interface Refusal {
  error: string
  message: string
}

interface Mailbox {
  email: string
  name?: string
}

export interface Inbox {
  id: string
  address: string
}

interface Attachment {
  id: string
  filename: string
  contentType: string
  size: number
  sha256: string
  scanState: string
}

export interface Message {
  id: string
  inboxId: string
  threadId: string
  direction: 'inbound' | 'outbound'
  internetMessageId: string
  inReplyTo: string | null
  references: string[]
  from: Mailbox
  to: Mailbox[]
  subject: string
  text: string
  html?: string
  delivery: { submissionId: string | null; status: string }
  attachments?: Attachment[]
  inboundSecurity?: { attachments: string }
}

export interface Submission {
  id: string
  status: string
  recipients: { email: string; status: string; response: string | null; failureCode: string | null }[]
}

export interface Acceptance {
  message: Message
  submission: Submission
  replayed: boolean
}

interface Call {
  method?: string
  body?: unknown
  idempotencyKey?: string
  timeoutMs?: number
}

export class Api {
  readonly #base: () => string
  readonly #secret: string

  /** Calls `base` for every request, because a restarted service listens elsewhere. */
  constructor(base: () => string, secret: string) {
    this.#base = base
    this.#secret = secret
  }

  /**
   * Sends one request. The caller checks the status. Rejects only if there was no response. A stream of events never ends, so
   * it is closed unread.
   */
  async call<Body = Refusal>(path: string, call: Call = {}): Promise<Answer<Body>> {
    const response = await this.#fetch(path, call)
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (isStream) await response.body!.cancel()
    const text = isStream ? '' : await response.text()
    return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : null }
  }

  /** The body of a response that must have `status` (200). Any other response throws an error that quotes it. */
  async want<Body>(path: string, { status = 200, ...call }: Call & { status?: number } = {}): Promise<Body> {
    const answer = await this.call<Body>(path, call)
    if (answer.status !== status) {
      const got = `${answer.status} ${JSON.stringify(answer.body)}`
      throw new Error(`${call.method ?? 'GET'} ${path}: ${status} was wanted, ${got} came`)
    }
    return answer.body
  }

  /** The raw bytes of a response that must be 200. */
  async bytes(path: string): Promise<Buffer> {
    const response = await this.#fetch(path, {})
    if (response.status !== 200) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`)
    return Buffer.from(await response.arrayBuffer())
  }

  /** A new managed inbox. */
  createInbox(localPart?: string): Promise<Inbox> {
    return this.want<Inbox>('/v1/inboxes', {
      method: 'POST',
      body: localPart ? { localPart } : {},
      status: 201,
    })
  }

  /** Every message of an inbox, page by page. */
  async exported(inboxId: string): Promise<Message[]> {
    const messages: Message[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''
      const path = `/v1/inboxes/${inboxId}/export?limit=100${query}`
      const page: { messages: Message[]; nextCursor: string | null } = await this.want(path)
      messages.push(...page.messages)
      cursor = page.nextCursor
    }
    return messages
  }

  #fetch(
    path: string,
    { method = 'GET', body, idempotencyKey, timeoutMs = 30_000 }: Call,
  ): Promise<Response> {
    const headers: Record<string, string> = { 'x-api-key': this.#secret }
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (idempotencyKey) headers['idempotency-key'] = idempotencyKey
    return fetch(this.#base() + path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    })
  }
}
