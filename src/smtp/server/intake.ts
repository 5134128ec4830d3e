// Passes one message to the backend: counts its bytes and remembers why it is refused.

import { type Reply, reply } from '../reply.ts'
import type { Incoming } from './backend.ts'

interface IntakeOptions {
  maxSizeBytes: number
  /** Called with each exception that the backend throws. */
  report(error: unknown): void
}

/** The reply after a failure of the backend. */
export const localError = reply(451, '4.3.0', 'Local error, try again later')
/** Smaller pieces are batched: a peer that sends single bytes must not cost the backend one object per byte. */
const minPieceBytes = 1024
const maxHeldBytes = 4096
const tooLarge = reply(552, '5.3.4', 'Message too large')

/** Passes a message on until it is refused. After that it only counts the bytes. */
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

  /** Why the message will be refused; null if it may still be accepted. */
  get refusal(): Reply | null {
    return this.#refusal
  }

  write(content: Buffer): void | Promise<void> {
    this.#sizeBytes += content.length
    // RFC 1870 6.3: the true size is checked too, even if a size was announced.
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
      // It is unknown whether the message was committed, so the peer must keep it.
      this.#options.report(error)
      return localError
    }
  }

  /** Refuses the message. A later reason replaces an earlier one. */
  refuse(refusal: Reply): void {
    this.#refusal = refusal
    this.abort()
  }

  /** Makes the backend discard the message. */
  abort(): void {
    const incoming = this.#incoming
    this.#incoming = null
    try {
      incoming?.abort()
    } catch (error) {
      // This is a bug of the backend. The message is discarded in any case.
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
      // The backend's bug must not end the session: the peer gets 451 and retries.
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#options.report(error)
    this.refuse(localError)
  }
}
