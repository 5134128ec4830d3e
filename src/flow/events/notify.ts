// Calls customers' endpoints: finds due deliveries, writes and signs their bodies, posts them, and records the results.
import { backoffMs } from '../../base/backoff.ts'
import { Batch } from '../../base/batch.ts'
import type { Clock } from '../../base/clock.ts'
import type { WebhookId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { meters } from '../../base/meters.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import { traced } from '../../base/trace.ts'
import { commitRows } from '../../postgres/commit.ts'
import { type Db, DbFault } from '../../postgres/db.ts'
import {
  type CallResult,
  type DueCall,
  findDueCalls,
  nextRetryAt,
  recordCalls,
} from '../../store/events/webhook-deliveries.ts'
import type { WebhookLease } from '../../store/events/webhooks.ts'
import type { CallAnswer, Poster } from '../../webhook/post.ts'
import { signatureHeaders } from '../../webhook/sign.ts'
import { openSigningSecret } from '../secrets/signing-secret.ts'
import { type Presenters, writeAnnouncements } from './write-announcements.ts'

export interface NotifierOptions {
  db: Db
  clock: Clock
  log: Log
  secretBox: SecretBox
  poster: Pick<Poster, 'post'>
  present: Presenters
  /** The waits between attempts. If the attempt after the last wait fails, the delivery has failed. */
  retryScheduleMs: number[]
}

/** A call that is ready to be made. `body` is null if its subject was deleted. */
export interface Call {
  id: string
  due: DueCall
  body: string | null
}

/** The outcome of a call, from which `EndpointWorker` sets the endpoint's pace. */
export interface Called {
  hasWorked: boolean
  tookMs: number
  /** Resolves with whether the result was written. False if the database failed or the call was aborted. */
  recorded: Promise<boolean>
}

export class Notifier {
  readonly #options: NotifierOptions
  readonly #results: Batch<CallResult, boolean>

  constructor(options: NotifierOptions) {
    this.#options = options
    this.#results = new Batch({
      name: 'webhook results',
      sizeOf: ({ response_body }) => 500 + (response_body?.length ?? 0),
      flush: (results) => this.#record(results),
    })
  }

  /** The operations on one endpoint, bound to its lease. */
  verbsFor(lease: WebhookLease, mayFinish: () => boolean) {
    let after: string | null = null
    const claim = async (limit: number, except: readonly string[]) => {
      if (!mayFinish()) return []
      const calls = await this.#claim(lease, { limit, after, except })
      after = calls.findLast(({ due }) => due.isFirst)?.id ?? after
      return calls
    }
    return {
      claim,
      call: (call: Call, signal: AbortSignal) => this.#call(lease, call, signal),
      nextDue: () => nextRetryAt(this.#options.db, lease.key),
    }
  }

  /** Resolves when every result is recorded or given up. */
  async drained(): Promise<void> {
    await this.#results.drained()
  }

  async #claim(lease: WebhookLease, wanted: Parameters<typeof findDueCalls>[3]): Promise<Call[]> {
    const { db, clock, present } = this.#options
    const due = await findDueCalls(db, lease, clock.now(), wanted)
    const written = await writeAnnouncements({ db, present }, due)
    return due.map((row, index) => ({ id: row.id, due: row, body: written[index]?.json ?? null }))
  }

  /** Makes the call. A call without a body is not posted: its delivery is recorded as failed. */
  async #call(lease: WebhookLease, call: Call, signal: AbortSignal): Promise<Called> {
    const { clock, log } = this.#options
    const at = clock.now()
    const startedMs = performance.now()
    const { item } = call.due
    const describe = () => ({ 'posthorn.webhook': lease.key, 'posthorn.event': item.id })
    const { body } = call
    const answer =
      body === null
        ? null
        : await traced('webhook call', describe, () => this.#post(lease, call.due, body, at, signal))
    const tookMs = performance.now() - startedMs
    const hasWorked = answer === null || answer.error === null
    meters.webhookSeconds.observe({ outcome: hasWorked ? 'succeeded' : 'failed' }, tookMs / 1000)
    log.debug(
      {
        webhook: lease.key,
        event: item.id,
        type: item.type,
        status: answer?.status,
        error: answer?.error,
      },
      'webhook called',
    )
    // This node stops or has lost the lease, and aborted the call. That says nothing about the receiver.
    if (signal.aborted && !hasWorked) return { hasWorked, tookMs, recorded: Promise.resolve(false) }
    const recorded = this.#results.add(this.#resultOf(lease, call, answer, at)).catch(() => false)
    return { hasWorked, tookMs, recorded }
  }

  async #post(
    { key: webhook }: WebhookLease,
    due: DueCall,
    body: string,
    at: Date,
    signal: AbortSignal,
  ): Promise<CallAnswer> {
    const { poster, log } = this.#options
    const secret = this.#open(webhook, due.sealedSecret)
    if (secret === null) {
      log.error({ webhook }, 'webhook signing secret could not be opened with this secret key')
      return { status: null, body: null, error: 'its signing secret cannot be opened: rotate it' }
    }
    const previous = due.sealedPreviousSecret && this.#open(webhook, due.sealedPreviousSecret)
    const secrets = previous === null ? [secret] : [secret, previous]
    const headers = signatureHeaders(due.item.id, at.getTime(), body, secrets)
    return await poster.post(due.url, { ...headers, 'user-agent': 'Posthorn-Webhooks' }, body, signal)
  }

  /** Returns null if the secret was sealed with another secret key, or altered. */
  #open(webhook: WebhookId, sealed: Buffer): string | null {
    try {
      return openSigningSecret(this.#options.secretBox, webhook, sealed)
    } catch {
      return null // the error gives no further reason
    }
  }

  #resultOf(lease: WebhookLease, { due, body }: Call, answer: CallAnswer | null, at: Date): CallResult {
    const { retryScheduleMs, clock } = this.#options
    const request =
      body === null ? null : { url: due.url, timestamp: at.toISOString(), sizeBytes: Buffer.byteLength(body) }
    const fields = { webhook: lease.key, epoch: lease.epoch, delivery: due.id, at, request }
    if (!answer) {
      const none = { next_attempt_at: null, response_status: null, response_body: null, gone: false }
      return { ...fields, ...none, status: 'failed', error: 'the resource of this event was deleted' }
    }
    const gone = answer.status === 410
    const isLast = gone || due.failures >= retryScheduleMs.length
    const status = answer.error === null ? 'succeeded' : isLast ? 'failed' : 'pending'
    const waitMs = backoffMs(retryScheduleMs, due.failures + 1)
    return {
      ...fields,
      status,
      next_attempt_at: status === 'pending' ? new Date(clock.nowMs() + waitMs) : null,
      response_status: answer.status,
      response_body: answer.body,
      error: answer.error,
      gone,
    }
  }

  async #record(results: CallResult[]): Promise<boolean[]> {
    const { db, clock, log } = this.#options
    // `record_calls` locks the endpoints in the order of their ids, so two batches never deadlock.
    return await commitRows(results, async (rows) => {
      const disabled = await recordCalls(db.writer, rows, clock.now())
      for (const webhook of disabled) log.info({ webhook }, 'webhook disabled')
      return rows.map(() => true)
    }).then((outcomes) => outcomes.map((outcome) => this.#isRecorded(outcome)))
  }

  #isRecorded(outcome: boolean | DbFault): boolean {
    if (!(outcome instanceof DbFault)) return outcome
    this.#options.log.error({ err: outcome }, 'webhook call result could not be recorded')
    return false
  }
}
