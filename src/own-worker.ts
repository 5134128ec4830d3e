// This process in its service: its name as a node, and what it shares with the other workers, if any.
import { hostname } from 'node:os'
import type { LookupMinutes } from './dns/hops-in-time.ts'
import type { NetworkCounts } from './http/connections.ts'
import type { WorkerMetric, WorkerMetrics } from './operator/metrics.ts'
import type { Peers, SmtpDoor } from './smtp/server/peers.ts'

export interface OwnWorker {
  /** The node's name in logs and lists: `host`, or `host/2` for the second worker of a service. */
  name: string
  /** From 1. */
  number: number
  /** Null: the service is this one process, which counts and answers for itself. */
  group: WorkerGroup | null
}

/** The other processes of the service, through the supervisor. */
export interface WorkerGroup {
  /** Limits on strangers and customers, counted for all workers together. */
  peers: Record<SmtpDoor, Peers>
  networks: NetworkCounts
  lookups: LookupMinutes
  /** Whether a worker takes work and no stop has begun: the answer of `/readyz` for the service. */
  isServing(): boolean
  /** Sets the source of this worker's metrics. */
  answerMetrics(read: () => Promise<WorkerMetric[]>): void
  /** Returns the metrics of the supervisor and of every worker. */
  collectMetrics(): Promise<WorkerMetrics[]>
}

/** The only process of a service. */
export const onlyWorker: OwnWorker = { name: hostname(), number: 1, group: null }

/** Returns the name of a worker's node. */
export function workerName(number: number): string {
  return `${hostname()}/${number}`
}
