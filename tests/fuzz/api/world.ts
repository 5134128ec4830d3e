// A service with an organization that has one of everything, and a pool of connections that sends requests to it.
import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import { foldMetrics } from '../../../src/flow/upkeep/fold-metrics.ts'
import { bodyLimitBytes } from '../../../src/http/body/read-json.ts'
import { type Furnisher, setFurnishedStage } from '../../http/furnish.ts'
import { type Caller, largestContentBytes } from '../../http/stage.ts'
import { actsBySession, startSessionFront } from '../../support/session-front.ts'
import type { Scope } from '../../support/until.ts'
import type { Breach } from './breach.ts'
import type { Answer, Operation } from './document.ts'
import { type Draft, Live } from './generate.ts'

/** Ids of objects that belong together, by the parameter names that take them. */
type Row = Record<string, string>

/** A request as sent. */
export interface Sent {
  method: string
  target: string
  headers: Record<string, string>
  body: Buffer | null
}

/** Number of objects of each kind that must exist before a request. */
const wanted = 4
const connections = 16

export class World {
  readonly base: string
  readonly caller: Caller
  readonly #furnisher: Furnisher
  readonly #pool: Pool
  readonly #rows = new Map<string, Row[]>()
  /** The last cursor that each list issued, by its path. */
  readonly #cursors = new Map<string, string>()
  #provedDomain: string
  #sender = ''

  private constructor(furnisher: Furnisher, caller: Caller, pool: Pool, provedDomain: string) {
    this.base = furnisher.stage.base
    this.#furnisher = furnisher
    this.caller = caller
    this.#pool = pool
    this.#provedDomain = provedDomain
  }

  static async create(scope: Scope): Promise<World> {
    const furnisher = await setFurnishedStage(scope)
    // Generating a new domain's keys takes 0.1 s, so this limit refuses more domains.
    const caller = await furnisher.createCaller({ limits: { domains: 12 } })
    const base = actsBySession ? await startSessionFront(scope, furnisher.stage) : furnisher.stage.base
    const pool = new Pool(base, { connections, pipelining: 1, headersTimeout: 60_000 })
    scope.after(() => pool.close())
    const world = new World(furnisher, caller, pool, await furnisher.addProvedDomain(caller))
    for (let count = 0; count < 3; count++) await furnisher.addComplaint(caller)
    await world.refill()
    return world
  }

  /** Folds metrics, as a node with the jobs role does every 2 s. Readers add up the unfolded rows. */
  async fold(): Promise<void> {
    while (await foldMetrics(this.#furnisher.stage));
  }

  /** Returns everything that the service has logged. */
  log(): string {
    return this.#furnisher.stage.log()
  }

  /** Recreates the objects that requests have deleted. */
  async refill(): Promise<void> {
    const { caller } = this
    this.#sender ||= await this.#findSender()
    const kinds: [kind: string, add: () => Promise<Row[]>][] = [
      ['inbox', () => this.#addInbox()],
      ['domain', async () => [{ domainId: await this.#addDomain() }]],
      ['webhook', async () => [await this.#furnisher.addWebhook(caller)]],
    ]
    for (const [kind, add] of kinds)
      for (let missing = wanted - this.#ofKind(kind).length; missing > 0; missing--)
        this.#add(kind, await add())
  }

  #ofKind(kind: string): Row[] {
    return this.#rows.get(kind) ?? []
  }

  #add(kind: string, rows: Row[]): void {
    this.#rows.set(kind, [...this.#ofKind(kind), ...rows])
  }

  async #addInbox(): Promise<Row[]> {
    const { inboxId, threadId, sent, received } = await this.#furnisher.addInbox(this.caller)
    const { messageId, submissionId } = sent
    return [
      { inboxId, threadId, messageId, submissionId, targetMessageId: messageId },
      { inboxId, threadId, ...received, submissionId, targetMessageId: received.messageId },
    ].map((row) => ({ attachmentId: received.attachmentId, ...row }))
  }

  async #addDomain(): Promise<string> {
    // Sends need a proved domain. Requests may delete the other domains as well.
    if (!this.#ofKind('domain').some(({ domainId }) => domainId === this.#provedDomain)) {
      const { status } = await this.caller.api.call(`/v1/domains/${this.#provedDomain}`)
      if (status === 200) return this.#provedDomain
      await this.#makeRoom()
      this.#provedDomain = await this.#furnisher.addProvedDomain(this.caller)
      this.#sender = await this.#findSender()
      return this.#provedDomain
    }
    await this.#makeRoom()
    return await this.#furnisher.addDomain(this.caller)
  }

  async #findSender(): Promise<string> {
    const { domain } = await this.caller.api.want<{ domain: string }>(`/v1/domains/${this.#provedDomain}`)
    return `sender@${domain}`
  }

  /** Deletes the domains that requests have registered. */
  async #makeRoom(): Promise<void> {
    const { api } = this.caller
    const { domains } = await api.want<{ domains: { id: string }[] }>('/v1/domains?limit=100')
    const known = new Set(this.#ofKind('domain').map(({ domainId }) => domainId))
    for (const { id } of domains)
      if (!known.has(id) && id !== this.#provedDomain)
        await api.call(`/v1/domains/${id}`, { method: 'DELETE' })
  }

  /** Sends the drafted request, with a breach if given. */
  async send(operation: Operation, drafted: Draft, breach?: Breach): Promise<{ sent: Sent; answer: Answer }> {
    const sent = this.#write(operation, breach?.draft?.(drafted) ?? drafted, breach)
    const answer = await this.#exchange(sent)
    this.#learn(sent, answer)
    return { sent, answer }
  }

  #write({ method, path, body: schema }: Operation, draft: Draft, breach: Breach | undefined): Sent {
    const fill = (value: unknown): unknown => this.#fill(value, draft.row, path)
    let target = path
    for (const [name, value] of Object.entries(draft.path))
      target = target.replace(`{${name}}`, () => encodeURIComponent(String(fill(value))))
    target = breach?.rewrite?.(target) ?? target
    const query = new URLSearchParams()
    for (const [name, value] of draft.query) {
      const filled =
        value instanceof Live && value.name === 'cursor' ? this.#cursors.get(target) : fill(value)
      if (filled !== undefined) query.append(name, String(filled))
    }
    const headers: Record<string, string> = { 'x-api-key': this.caller.secret }
    for (const [name, value] of Object.entries(draft.headers))
      headers[name] = headerValue(String(fill(value)))
    let body: Buffer | null = schema ? Buffer.from(JSON.stringify(fill(draft.body))) : null
    if (body) headers['content-type'] = 'application/json'
    if (body && breach?.raw) body = breach.raw(body, bodyLimitBytes(largestContentBytes))
    for (const [name, value] of Object.entries(breach?.headers ?? {}))
      if (value === null) delete headers[name]
      else headers[name] = value
    return {
      method: breach?.method ?? method,
      target: query.size > 0 ? `${target}?${query}` : target,
      headers,
      body,
    }
  }

  #fill(value: unknown, row: number, path: string): unknown {
    if (value instanceof Live) return this.#idOf(value.name, row, path)
    if (Array.isArray(value)) return value.map((item) => this.#fill(item, row, path))
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, this.#fill(member, row, path)]),
    )
  }

  #idOf(name: string, row: number, path: string): string {
    if (name === 'sender') return this.#sender
    for (const rows of this.#rows.values()) {
      // An attachment id needs a message that has an attachment.
      const fitting = rows.filter((one) => name in one && (!path.includes('{attachmentId}') || belongs(one)))
      const one = fitting[row % fitting.length]
      if (one) return one[name]!
    }
    throw new Error(`teach the world what ${name} stands for`)
  }

  async #exchange({ method, target, headers, body }: Sent): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      try {
        const answer = await this.#pool.request({ method: method as 'GET', path: target, headers, body })
        return {
          status: answer.statusCode,
          headers: answer.headers,
          body: Buffer.from(await answer.body.arrayBuffer()),
        }
      } catch (error) {
        // The pool may pick a connection that the service closed after a refusal.
        if (tries === 3) throw error
        await pause(10)
      }
    }
  }

  #learn({ method, target }: Sent, { status, body }: Answer): void {
    const [path = ''] = target.split('?')
    if (method === 'DELETE' && status === 204) this.#forget(path.split('/').at(-1)!)
    if (method !== 'GET' || status !== 200 || !body.includes('"nextCursor":"')) return
    this.#cursors.set(path, JSON.parse(body.toString()).nextCursor)
  }

  #forget(id: string): void {
    for (const [kind, rows] of this.#rows)
      this.#rows.set(
        kind,
        rows.filter((row) => !Object.values(row).includes(id.toLowerCase())),
      )
  }

  /** Checks, over the service's normal client, that it still answers. */
  async isAlive(): Promise<boolean> {
    return (await this.caller.api.call('/v1/me')).status === 200
  }
}

function belongs({ messageId, attachmentId }: Row): boolean {
  return attachmentId!.startsWith(`att_${messageId!.slice(4)}_`)
}

/** Replaces characters that Node refuses to write in a header. */
function headerValue(text: string): string {
  return text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '?')
}
