// How an attempt ends for its recipients: their state, when they are due again, and the event that reports it.
import { backoffMs } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import { classify } from '../../mail/bounce/reply-code.ts'
import type { RecipientResult } from '../../smtp/client/transaction.ts'
import type { Step } from '../../smtp/client/wire.ts'
import { replyLine } from '../../smtp/reply.ts'
import { writeConversation } from '../../store/sending/conversation.ts'
import type { ClaimedDelivery, DeliveryResult, Outcome } from '../../store/sending/deliveries.ts'
import { retryScheduleOf } from '../route-policy.ts'
import { claimKeyOf, type DeliveryJob, giveBack } from './delivery-job.ts'

interface EndingDeps {
  clock: Clock
  retryScheduleMs: readonly number[]
}

export interface Attempt {
  beganAt: Date
  /** The same time on the monotonic clock. */
  beganMs: number
  remote: Outcome['remote']
  steps: readonly Step[]
  /** Whether a refusal is about our source address. */
  isBlocked: boolean
}

const delivered = { status: 'delivered', dueAt: null, failureCode: null } as const

function deferred(dueAt: Date) {
  return { status: 'deferred', dueAt, failureCode: null } as const
}

function bounced(failureCode: string | null) {
  return { status: 'bounced', dueAt: null, failureCode } as const
}

function failed(failureCode: string) {
  return { status: 'failed', dueAt: null, failureCode } as const
}

/** Outcome fields when no server was contacted. */
const unspoken = { attempt: null, remote: null, enhancedStatus: null, beganAt: null, conversation: null }

/** The result for one recipient, from the server's answer or the lack of one. */
export function resultOf(
  { clock, retryScheduleMs }: EndingDeps,
  job: DeliveryJob,
  delivery: ClaimedDelivery,
  result: RecipientResult,
  attempt: Attempt,
): DeliveryResult {
  if (result.outcome === 'untried' || result.outcome === 'abandoned') return giveBack(job, delivery)
  const key = claimKeyOf(job, delivery)
  const at = clock.now()
  const { beganAt, beganMs, remote, steps, isBlocked } = attempt
  const tried = {
    at,
    beganAt,
    attempt: delivery.attempts,
    remote,
    queuedAt: firstTaken(delivery),
    conversation: writeConversation(steps, beganMs),
  }
  const later = deferred(nextAttempt(retryScheduleOf(job.route, retryScheduleMs), delivery, at))
  if (result.outcome === 'unknown') {
    // The connection was lost after the end of the message, before the reply. A retry may deliver the message twice.
    const outcome = { ...tried, type: 'deferred', enhancedStatus: null, classification: 'network' }
    return { ...key, ...later, response: null, outcome }
  }
  const response = replyLine(result.reply)
  const answered = {
    ...tried,
    remote: remote && { ...remote, stage: result.stage },
    enhancedStatus: result.reply.enhanced,
  }
  if (result.outcome === 'delivered')
    return {
      ...key,
      ...delivered,
      response,
      outcome: { ...answered, type: 'delivered', classification: null },
    }
  const { isPermanent, classification, failureCode, suppresses } = classify(result.reply, result.stage)
  // Another source may deliver the mail now. Only once, because a server may refuse this recipient in such words each time.
  const ending = isBlocked && delivery.attempts === 1 ? deferred(at) : later
  if (isBlocked || !isPermanent)
    return { ...key, ...ending, response, outcome: { ...answered, type: 'deferred', classification } }
  const outcome = { ...answered, type: 'bounced', classification }
  return { ...key, ...bounced(failureCode), response, suppresses, outcome }
}

/**
 * Returns results for mail that must not be sent now. `unproved`: the sender's domain is not proved for sending, and the mail
 * waits as after a temporary refusal. `gone`: the domain was deleted, and the mail is cancelled, like the mail that was
 * waiting at the deletion.
 */
export function withhold(
  { clock, retryScheduleMs }: EndingDeps,
  job: DeliveryJob,
  reason: 'unproved' | 'gone',
): DeliveryResult[] {
  const at = clock.now()
  return job.deliveries.map((delivery) => {
    const key = claimKeyOf(job, delivery)
    const untold = { ...unspoken, at, queuedAt: firstTaken(delivery) }
    if (reason === 'gone') {
      const outcome = { ...untold, type: 'cancelled', classification: null }
      return { ...key, ...failed('cancelled'), response: null, outcome }
    }
    const outcome = { ...untold, type: 'deferred', classification: 'policy' }
    return { ...key, ...deferred(nextAttempt(retryScheduleMs, delivery, at)), response: null, outcome }
  })
}

const maxOwnFaults = 5
const notWritten = 'this service could not write the message, by a fault of its own'

/**
 * Returns results for a message that we could not write because of our own fault. The message is retried by the schedule and
 * fails at the `maxOwnFaults`-th `lasting` fault. `passing` faults do not count.
 */
export function unwritten(
  { clock, retryScheduleMs }: EndingDeps,
  job: Omit<DeliveryJob, 'content'>,
  cause: 'lasting' | 'passing',
): DeliveryResult[] {
  const at = clock.now()
  return job.deliveries.map((delivery) => {
    const ownFaults = delivery.ownFaults + (cause === 'lasting' ? 1 : 0)
    const end =
      ownFaults >= maxOwnFaults
        ? failed('internal_error')
        : deferred(nextAttempt(retryScheduleMs, delivery, at))
    const facts = { type: end.status, at, attempt: delivery.attempts, classification: 'other' }
    const outcome = { ...unspoken, ...facts, queuedAt: firstTaken(delivery) }
    return { ...claimKeyOf(job, delivery), ...end, response: notWritten, ownFaults, outcome }
  })
}

/** Returns when the first attempt was claimed. Null for later attempts. */
function firstTaken({ attempts, queuedAt }: ClaimedDelivery): Date | null {
  return attempts > 1 ? null : queuedAt
}

/** The next attempt by the schedule, but never past the end of the lifetime, when the delivery is given up. */
function nextAttempt(
  scheduleMs: readonly number[],
  { attempts, expiresAt }: ClaimedDelivery,
  at: Date,
): Date {
  return new Date(Math.min(at.getTime() + backoffMs(scheduleMs, attempts), expiresAt.getTime()))
}
