// The calls between a supervisor and its workers.
import type { AddressInfo } from 'node:net'
import type { Listening } from '../../app.ts'
import type { WorkerMetric, WorkerMetrics } from '../../operator/metrics.ts'
import type { Reply } from '../../smtp/reply.ts'
import type { Misdeed, SmtpDoor } from '../../smtp/server/peers.ts'

/** Limits that the supervisor counts for all workers. They are those of `Peers`, `NetworkCounts` and `LookupMinutes`. */
export interface LimitCalls {
  admitPeer(door: SmtpDoor, address: string): Reply | null
  leavePeer(door: SmtpDoor, address: string): void
  refusePeer(door: SmtpDoor, address: string): Reply | null
  beginMessage(door: SmtpDoor, address: string): Reply | null
  answerPeer(door: SmtpDoor, address: string, misdeed: Misdeed): Promise<Reply | null>
  notePeer(door: SmtpDoor, address: string, misdeed: Misdeed): void
  noteTaken(door: SmtpDoor, address: string): void
  takeConnection(network: string): boolean
  giveConnection(network: string): void
  takeLookups(asker: string, count: number): number | null
}

export interface ListenQuery {
  address: string
  port: number
  backlog: number
  /** Distinguishes the servers of a worker that ask for any port. */
  index: number
}

/** An open listener, or the system's error number. */
export type Listened = { key: string; bound: AddressInfo } | number

/** Listeners, which the supervisor opens for all workers. */
export interface ListenCalls {
  listen(query: ListenQuery): Promise<Listened>
  unlisten(key: string): void
  /** The answers to a connection. Until one of them, the worker gets no other connection from this listener. */
  took(key: string): void
  refused(key: string): void
}

export interface SupervisorCalls extends LimitCalls, ListenCalls {
  /** The worker listens to the supervisor from now on. Node drops earlier messages. */
  joined(): void
  /** The worker takes work. */
  ready(listening: Listening): void
  collectMetrics(): Promise<WorkerMetrics[]>
}

export interface WorkerCalls {
  /** Answered as soon as the worker's event loop gets to it. */
  beat(): void
  /** Drains the worker, which then ends. */
  stop(): void
  /** `serving` while the service takes work. */
  announce(state: 'serving' | 'not serving'): void
  readMetrics(): Promise<WorkerMetric[]>
}
