// The counts of peers that a server needs: of this process, or of all workers of a service.
import type { Awaitable } from '../../base/within.ts'
import type { Reply } from '../reply.ts'

/** Counts that drop by one a minute and with each accepted message. At the limit a peer is blocked for ten minutes. */
export type Misdeed = 'errors' | 'unknown'

/** The servers whose peers are counted apart, so that mail from the world cannot shut out customers' programs. */
export const smtpDoors = ['mx', 'submission'] as const
export type SmtpDoor = (typeof smtpDoors)[number]

/** Counts the actions of peers. Each reply is the one to close with; null: the peer may go on. */
export interface Peers {
  /** Counts a connection. If it is admitted, one `leave` must follow. */
  admit(address: string): Awaitable<Reply | null>
  leave(address: string): void
  /** Returns the reply for an address that is blocked now. */
  refusal(address: string): Awaitable<Reply | null>
  /** Counts the start of a message. */
  beginMessage(address: string): Awaitable<Reply | null>
  /** Counts a misdeed. Resolves when the reply to it may be sent. */
  answer(address: string, misdeed: Misdeed): Promise<Reply | null>
  /** Counts a misdeed whose reply does not wait. */
  note(address: string, misdeed: Misdeed): void
  /** Counts one accepted message. */
  noteTaken(address: string): void
}
