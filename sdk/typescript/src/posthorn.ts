// The client: the operations of the API, and handles for an inbox and a thread.
import { type CallOptions, Calls, type PosthornOptions, type SendOptions } from './calls.ts'
import { Events } from './event-stream.ts'
import { Operations } from './operations.gen.ts'
import type { Pages } from './pages.ts'
import type { Answer, Body, Message, Query, Without } from './types.ts'
import { Waiting, type WaitOptions } from './waiting.ts'

export type { components } from './api.gen.ts'
export type { Content, Download, GivenAttachment } from './attachments.ts'
export type { CallOptions, PosthornOptions, SendOptions } from './calls.ts'
export type { Clock } from './clock.ts'
export * from './errors.ts'
export type { EventOptions, Events } from './event-stream.ts'
export type { Pages } from './pages.ts'
export type { Answer, Body, Message, Query, StreamEvent, WebhookEvent } from './types.ts'
export type { WaitOptions, WatchOptions } from './waiting.ts'
export { verifyWebhook } from './webhook.ts'

/** A client of one service with one key. */
export class Posthorn extends Operations {
  readonly events: Events
  readonly #calls: Calls

  constructor(options: PosthornOptions) {
    const calls = new Calls(options)
    super(calls)
    this.#calls = calls
    this.events = new Events(calls)
  }

  /** Binds the id of an inbox. Requests nothing. */
  inbox(inbox: string | { id: string }): InboxHandle {
    return new InboxHandle(this, this.#calls, typeof inbox === 'string' ? inbox : inbox.id)
  }

  /** Binds a message and its thread. Requests nothing. */
  thread(message: Pick<Message, 'id' | 'inboxId' | 'threadId'>): ThreadHandle {
    return new ThreadHandle(this, message)
  }
}

export type { InboxHandle, ThreadHandle }

class InboxHandle {
  readonly id: string
  readonly messages: InboxMessages

  constructor(client: Posthorn, calls: Calls, id: string) {
    this.id = id
    this.messages = new InboxMessages(client, calls, id)
  }
}

class InboxMessages extends Waiting {
  readonly #client: Posthorn
  readonly #id: string

  constructor(client: Posthorn, calls: Calls, id: string) {
    super(calls, client.messages, id)
    this.#client = client
    this.#id = id
  }

  /** Sends a message that starts a conversation. */
  send(body: Body<'sendMessage'>, options?: SendOptions): Promise<Answer<'sendMessage'>> {
    return this.#client.messages.send(this.#id, body, options)
  }

  /** Lists or searches the messages of the inbox, newest first. */
  list(query?: Query<'listMessages'>, options?: CallOptions): Pages<Message, Answer<'listMessages'>> {
    return this.#client.messages.list(this.#id, query, options)
  }
}

class ThreadHandle {
  readonly #client: Posthorn
  readonly #message: Pick<Message, 'id' | 'inboxId' | 'threadId'>

  constructor(client: Posthorn, message: Pick<Message, 'id' | 'inboxId' | 'threadId'>) {
    this.#client = client
    this.#message = message
  }

  /** Answers the message. */
  reply(
    body: Without<Body<'replyToThread'>, 'targetMessageId'>,
    options?: SendOptions,
  ): Promise<Answer<'replyToThread'>> {
    const { id, threadId } = this.#message
    const reply = { ...body, targetMessageId: id } as Body<'replyToThread'>
    return this.#client.threads.reply(threadId, reply, options)
  }

  /** Lists the messages of the thread, oldest first. */
  messages(query?: Query<'getThread'>, options?: CallOptions): Pages<Message, Answer<'getThread'>> {
    return this.#client.threads.messages(this.#message.threadId, query, options)
  }

  /** Returns the next received message of the thread. Throws WaitTimeoutError if none came in time. */
  waitForReply(options: Pick<WaitOptions, 'match' | 'timeoutMs' | 'signal'> = {}): Promise<Message> {
    const { id, inboxId, threadId } = this.#message
    const { match = () => true } = options
    const isReply = (message: Message) => message.threadId === threadId && match(message)
    return this.#client.inbox(inboxId).messages.wait({ ...options, after: id, match: isReply })
  }
}
