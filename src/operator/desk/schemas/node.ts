// Schemas of nodes, of the backlog, and of this node's metrics.
import Type, { type Static } from 'typebox'
import { orNull, Time } from './scalars.ts'

const Count = Type.Integer()
const Address = orNull(Type.String())

export const NodeList = Type.Object({
  nodes: Type.Array(
    Type.Object({
      id: Type.Integer(),
      version: orNull(Type.String()),
      roles: Type.Array(Type.String()),
      isAlive: Type.Boolean(),
      startedAt: Time,
      queues: Count,
      smtp: Address,
      capture: Address,
      operator: Address,
    }),
  ),
  /** The sum over all nodes. No count exceeds a million. */
  backlog: Type.Object({
    due: Count,
    later: Count,
    onWire: Count,
    oldestAcceptedAt: orNull(Time),
    spooled: Count,
    oldestReceivedAt: orNull(Time),
    scans: Count,
    webhookCalls: Count,
    oldestWebhookCallAt: orNull(Time),
    unfolded: Count,
    oldestUnindexedAt: orNull(Time),
  }),
  connections: Type.Object({ open: Count, max: Count }),
})
export type NodeList = Static<typeof NodeList>

/** This node's /metrics without the buckets of histograms. */
export const Numbers = Type.Object({
  numbers: Type.Array(
    Type.Object({
      name: Type.String(),
      help: Type.String(),
      kind: Type.String(),
      values: Type.Array(
        Type.Object({ labels: Type.Record(Type.String(), Type.String()), value: Type.Number() }),
      ),
    }),
  ),
})
