// Schemas of destination queues at the desk.
import Type from 'typebox'
import { exactly, oneOf, orNull, Time, Uuid } from './scalars.ts'

const Count = Type.Integer()

/** A domain, or `@local`, `@relay`, `@capture`; before it, a wish for TLS and a pool. */
export const QueueParams = Type.Object({ queue: Type.String({ maxLength: 320 }) })
export const QueueQuery = exactly({ offset: Type.Optional(Type.String({ pattern: '^\\d{1,6}$' })) })

const queue = {
  key: Type.String(),
  waiting: Count,
  onWire: Count,
  state: oneOf(['running', 'paused', 'blocked']),
  /** Consecutive failures to reach the destination. */
  failures: Count,
  /** The end of its backoff. */
  notBefore: orNull(Time),
  oldestDueAt: orNull(Time),
  lastFault: orNull(Type.String()),
  lastFaultAt: orNull(Time),
  /** The number of the node that owns it. */
  owner: orNull(Type.Integer()),
}

export const QueueList = Type.Object({ queues: Type.Array(Type.Object(queue)) })

/** An attempt's conversation: for each step the command, the reply, and its time (ms since the attempt began). */
const Conversation = Type.Object({
  isReused: Type.Boolean(),
  steps: Type.Array(
    Type.Object({
      command: Type.String(),
      atMs: Type.Integer(),
      code: Type.Integer(),
      enhancedStatus: orNull(Type.String()),
      text: Type.String(),
    }),
  ),
})

export const Queue = Type.Object({
  ...queue,
  deliveries: Type.Array(
    Type.Object({
      submissionId: Uuid,
      position: Count,
      email: Type.String(),
      status: oneOf(['pending', 'deferred']),
      organizationId: Uuid,
      organizationName: Type.String(),
      isHeld: Type.Boolean(),
      sender: Type.String(),
      subject: Type.String(),
      attempts: Count,
      response: orNull(Type.String()),
      /** The conversation of its last attempt. */
      conversation: orNull(Conversation),
      acceptedAt: Time,
      dueAt: Time,
      expiresAt: Time,
    }),
  ),
  nextOffset: orNull(Type.Integer()),
})

export const QueueState = Type.Object({ key: Type.String(), state: oneOf(['running', 'paused']) })
export const Moved = Type.Object({ moved: Count })
export const Cancelled = Type.Object({ cancelled: Count })
