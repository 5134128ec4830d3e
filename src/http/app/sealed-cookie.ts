// A sealed cookie that carries data between two steps of one sign-in, for minutes.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../base/clock.ts'
import type { SecretBox } from '../../base/secret-box.ts'

const purpose = 'app cookie'
const attributes = { path: '/', httpOnly: true, secure: true, sameSite: 'lax' } as const

/** A cookie that only we can write and read. Its content is bound to its name. */
export class SealedCookie<Content> {
  readonly #secretBox: SecretBox
  readonly #clock: Clock
  readonly #name: string
  readonly #lifetimeMs: number

  constructor(
    { secretBox, clock }: { secretBox: SecretBox; clock: Clock },
    { name, lifetimeMs }: { name: string; lifetimeMs: number },
  ) {
    this.#secretBox = secretBox
    this.#clock = clock
    this.#name = `__Host-posthorn-${name}`
    this.#lifetimeMs = lifetimeMs
  }

  set(reply: FastifyReply, content: Content): void {
    const plain = JSON.stringify({ content, untilMs: this.#clock.nowMs() + this.#lifetimeMs })
    const sealed = this.#secretBox.seal(purpose, plain, this.#name).toString('base64url')
    reply.setCookie(this.#name, sealed, { ...attributes, maxAge: this.#lifetimeMs / 1000 })
  }

  /** Returns the content and deletes the cookie. Null if it is not ours, or too old. */
  take(request: FastifyRequest, reply: FastifyReply): Content | null {
    const given = request.cookies[this.#name]
    if (given === undefined) return null
    reply.setCookie(this.#name, '', { ...attributes, maxAge: 0 })
    return this.#open(given)
  }

  #open(given: string): Content | null {
    try {
      const opened = this.#secretBox.open(purpose, Buffer.from(given, 'base64url'), this.#name)
      const { content, untilMs } = JSON.parse(opened.toString()) as { content: Content; untilMs: number }
      return untilMs > this.#clock.nowMs() ? content : null
    } catch {
      return null // forged or cut
    }
  }
}
