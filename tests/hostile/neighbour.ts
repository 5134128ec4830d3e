// A tenant during an attack, with a person who signs in: the times of their send, their RCPT and their sign-in.
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Db } from '../../src/postgres/db.ts'
import { Visitor } from '../http/app/visitor.ts'
import type { Inbox } from '../support/api.ts'
import type { Posthorn } from '../support/service.ts'
import type { Scope } from '../support/until.ts'
import { Wire } from '../support/wire.ts'
import { inMs, type Stage, send } from './attack.ts'

/** With these settings every visitor comes from a network of its own. */
export const proxied = { POSTHORN_TRUSTED_PROXIES: '127.0.0.0/8', POSTHORN_SIGN_UP: 'open' }

const limitMs = 1_000
/** The person at the healthy destination. */
const email = 'neighbour@healthy.test'

export type Visits = ConstructorParameters<typeof Visitor>[0]

/** The service's address, and its database with the mails that it wrote to visitors. */
export async function openVisits(scope: Scope, posthorn: Posthorn): Promise<Visits> {
  const db = new Db({ connection: posthorn.database() as never })
  scope.after(() => db.close())
  return { base: posthorn.http, db }
}

/** The longest times of a send, of an SMTP session up to the reply to RCPT, and of a sign-in by password. */
export class Waits {
  sendMs = 0
  rcptMs = 0
  signInMs = 0
  rounds = 0

  get isShort(): boolean {
    return Math.max(this.sendMs, this.rcptMs, this.signInMs) < limitMs
  }

  toString(): string {
    const { sendMs, rcptMs, signInMs, rounds } = this
    return `the neighbour's send ${inMs(sendMs)}, RCPT ${inMs(rcptMs)}, sign-in ${inMs(signInMs)} at most, of ${rounds} each`
  }
}

export class Neighbour {
  readonly #stage: Stage
  readonly #visits: Visits
  readonly #inbox: Inbox

  private constructor(stage: Stage, visits: Visits, inbox: Inbox) {
    this.#stage = stage
    this.#visits = visits
    this.#inbox = inbox
  }

  /** They have signed up and sent a mail before the attack begins. */
  static async settle(stage: Stage, visits: Visits): Promise<Neighbour> {
    const neighbour = new Neighbour(stage, visits, await stage.victim.createInbox())
    await new Visitor(visits).signUp(email)
    await neighbour.#measure(new Waits())
    return neighbour
  }

  /** Measures their waits until the attack has ended. Rejects if the attack rejects or if they are refused. */
  async during(attack: Promise<unknown>): Promise<Waits> {
    const waits = new Waits()
    let isOver = false
    const over = attack.finally(() => (isOver = true))
    over.catch(() => {})
    while (!isOver) {
      await this.#measure(waits)
      await pause(50)
    }
    await over
    return waits
  }

  async #measure(waits: Waits): Promise<void> {
    const time = async (work: Promise<unknown>) => {
      const startMs = performance.now()
      await work
      return performance.now() - startMs
    }
    waits.sendMs = Math.max(waits.sendMs, await time(send(this.#stage.victim, this.#inbox, [email])))
    waits.rcptMs = Math.max(waits.rcptMs, await time(this.#ask()))
    waits.signInMs = Math.max(waits.signInMs, await time(new Visitor(this.#visits).signIn(email)))
    waits.rounds++
  }

  async #ask(): Promise<void> {
    const reply = await converse(this.#stage.posthorn.smtp, `RCPT TO:<${this.#inbox.address}>`)
    if (!reply?.startsWith('250')) throw new Error(`RCPT: ${reply}`)
  }
}

/**
 * A session of its own: greets, sends the lines one after another, and returns the reply to the last. Null if it was cut.
 */
export async function converse(
  smtp: { host: string; port: number },
  ...lines: string[]
): Promise<string | null> {
  const socket = connect(smtp)
  const wire = new Wire(socket)
  try {
    let reply = await wire.reply()
    for (const line of ['EHLO far.test', 'MAIL FROM:<a@far.test>', ...lines]) {
      await wire.write(`${line}\r\n`)
      reply = await wire.reply()
    }
    return reply
  } finally {
    socket.destroy()
  }
}
