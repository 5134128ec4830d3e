// Waiting for mail: for one message, or for all that come, by requests that the service answers once there is mail.
import type { Calls } from './calls.ts'
import { WaitTimeoutError } from './errors.ts'
import type { Messages } from './operations.gen.ts'
import { spread } from './retries.ts'
import type { Message, Query } from './types.ts'

export interface WatchOptions {
  /** Only messages filed after this one: a message or its id. `0`: from the beginning, the default. `now`: from now on. */
  after?: string | { id: string }
  /** Default: `inbound`. */
  direction?: 'inbound' | 'outbound' | 'any'
  /** Messages for which it is false are skipped. */
  match?: (message: Message) => boolean
  /** Ends the wait, which then throws the signal's reason. */
  signal?: AbortSignal
}

export interface WaitOptions extends WatchOptions {
  /** Default: 60 s. */
  timeoutMs?: number
}

const longestWaitSeconds = 30
/** An empty page that comes sooner is followed by a pause. */
const soonMs = 1_000

/** The messages of an inbox as they are filed. */
export class Waiting {
  readonly #calls: Calls
  readonly #messages: Messages
  readonly #inboxId: string

  constructor(calls: Calls, messages: Messages, inboxId: string) {
    this.#calls = calls
    this.#messages = messages
    this.#inboxId = inboxId
  }

  /** Returns the first message that matches. Throws WaitTimeoutError if none came in time. */
  async wait(options: WaitOptions = {}): Promise<Message> {
    const untilMs = this.#calls.clock.nowMs() + (options.timeoutMs ?? 60_000)
    for await (const message of this.#follow(options, untilMs)) return message
    throw new WaitTimeoutError('No message came in time.', { code: 'wait_timeout', isTemporary: true })
  }

  /** Iterates over the messages that match, without end. */
  watch(options: WatchOptions = {}): AsyncGenerator<Message, void> {
    return this.#follow(options, Number.POSITIVE_INFINITY)
  }

  /** Ends after a request that was answered when the time was over. */
  async *#follow(options: WatchOptions, untilMs: number): AsyncGenerator<Message, void> {
    const { clock } = this.#calls
    const { match = () => true, signal } = options
    let after = await this.#position(options, untilMs)
    for (;;) {
      const askedMs = clock.nowMs()
      const messages = await this.#request(after, options, Math.max(0, untilMs - askedMs))
      for (const message of messages) {
        after = message.id
        if (match(message)) yield message
      }
      const nowMs = clock.nowMs()
      if (nowMs >= untilMs) return
      // A node that stops answers at once, and so may a proxy.
      if (messages.length === 0 && nowMs - askedMs < soonMs)
        await clock.sleep(Math.min(spread(soonMs, clock.random()), untilMs - nowMs), signal)
    }
  }

  async #request(after: string, { direction, signal }: WatchOptions, leftMs: number): Promise<Message[]> {
    const wait = Math.min(longestWaitSeconds, Math.ceil(leftMs / 1_000))
    const query: Query<'listMessages'> = { after, wait }
    if (direction !== 'any') query.direction = direction ?? 'inbound'
    // The call adds the seconds of `wait`. The last answer may come a little after the time is over.
    const deadlineMs = leftMs - wait * 1_000 + this.#calls.attemptTimeoutMs
    const page = this.#messages.list(this.#inboxId, query, { deadlineMs, ...(signal && { signal }) })
    return (await page.first()).messages
  }

  async #position({ after = '0', signal }: WatchOptions, untilMs: number): Promise<string> {
    if (typeof after !== 'string') return after.id
    if (after !== 'now') return after
    const options = { deadlineMs: untilMs - this.#calls.clock.nowMs(), ...(signal && { signal }) }
    const newest = await this.#messages.list(this.#inboxId, { limit: 1 }, options).first()
    return newest.messages[0]?.id ?? '0'
  }
}
