// One message on its way to the backend: counts its bytes and remembers why it is refused.

import { type Reply, reply } from '../reply.ts'
import type { Incoming } from './backend.ts'

interface IntakeOptions {
  maxSizeBytes: number
  /** Called with each exception of the backend. */
  report(error: unknown): void
}

/** The reply instead of that of a backend that failed. */
export const localError = reply(451, '4.3.0', 'Local error, try again later')
/** Pieces below this are batched: a peer that sends single bytes must not cost the backend an object for each. */
const minPieceBytes = 1024
const maxHeldBytes = 4096
const tooLarge = reply(552, '5.3.4', 'Message too large')

/** Passes a message on until it is refused; from then on its bytes are only counted. */
export class Intake {
  readonly #options: IntakeOptions
  #incoming: Incoming | null
  #refusal: Reply | null = null
  #sizeBytes = 0
  #held: Buffer = Buffer.alloc(0)
  #heldBytes = 0

  constructor(incoming: Incoming, options: IntakeOptions) {
    this.#incoming = incoming
    this.#options = options
  }

  /** Why the message will not be taken; null while it may be. */
  get refusal(): Reply | null {
    return this.#refusal
  }

  write(content: Buffer): void | Promise<void> {
    this.#sizeBytes += content.length
    // RFC 1870 6.3: the true size is checked too, whatever was announced.
    if (this.#sizeBytes > this.#options.maxSizeBytes) this.refuse(tooLarge)
    if (this.#incoming === null || content.length === 0) return
    if (this.#heldBytes === 0 && content.length >= minPieceBytes) return this.#pass(content)
    if (this.#heldBytes + content.length <= maxHeldBytes) return this.#hold(content)
    return this.#pass(Buffer.concat([this.#takeHeld(), content]))
  }

  /** Returns the final reply. */
  async end(): Promise<Reply> {
    if (this.#heldBytes > 0) await this.#pass(this.#takeHeld())
    const incoming = this.#incoming
    this.#incoming = null
    if (incoming === null) return this.#refusal ?? localError
    try {
      return await incoming.end()
    } catch (error) {
      // Nothing is known to be committed, so the peer keeps the message.
      this.#options.report(error)
      return localError
    }
  }

  /** Refuses the message; a later reason replaces an earlier one. */
  refuse(refusal: Reply): void {
    this.#refusal = refusal
    this.abort()
  }

  /** Lets the backend forget what it got. */
  abort(): void {
    const incoming = this.#incoming
    this.#incoming = null
    try {
      incoming?.abort()
    } catch (error) {
      // The backend's bug; the message is refused all the same.
      this.#options.report(error)
    }
  }

  #hold(content: Buffer): void {
    if (this.#held.length === 0) this.#held = Buffer.allocUnsafe(maxHeldBytes)
    content.copy(this.#held, this.#heldBytes)
    this.#heldBytes += content.length
  }

  #takeHeld(): Buffer {
    const held = this.#held.subarray(0, this.#heldBytes)
    this.#held = Buffer.alloc(0)
    this.#heldBytes = 0
    return held
  }

  #pass(content: Buffer): void | Promise<void> {
    try {
      return this.#incoming?.write(content)?.catch((error: unknown) => this.#fail(error))
    } catch (error) {
      // The backend's bug must not end the session: the peer is asked to try again.
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#options.report(error)
    this.refuse(localError)
  }
}
