// The service under fuzzing: the real program in its own process, its inboxes, and its measures.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Api, Inbox } from '../../support/api.ts'
import { createCaller, type Posthorn, startPosthorn } from '../../support/service.ts'
import { type Scope, until } from '../../support/until.ts'
import type { Measure } from './measure.ts'

/** Small, so that messages over the limit cost little. */
const maxSizeBytes = 1_000_000
/** The mail host of a service whose settings name none. */
const mailHost = 'localhost'

export class Subject {
  readonly api: Api
  readonly mailHost = mailHost
  readonly #posthorn: Posthorn
  readonly #measures: string

  private constructor(posthorn: Posthorn, api: Api, measures: string) {
    this.#posthorn = posthorn
    this.api = api
    this.#measures = measures
  }

  /** Starts the service, which ends with the scope. */
  static async start(scope: Scope): Promise<Subject> {
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-fuzz-'))
    scope.after(() => rmSync(folder, { recursive: true, force: true }))
    const measures = join(folder, 'measure.json')
    const env = {
      NODE_OPTIONS: `--import ${new URL('measure.ts', import.meta.url).href}`,
      FUZZ_MEASURES: measures,
      POSTHORN_SMTP_MAX_SIZE: String(maxSizeBytes),
      POSTHORN_LOG_LEVEL: 'error',
    }
    const posthorn = await startPosthorn(scope, { env })
    const { api } = await createCaller(posthorn)
    return new Subject(posthorn, api, measures)
  }

  get port(): number {
    return this.#posthorn.smtp.port
  }

  get isRunning(): boolean {
    return this.#posthorn.isRunning()
  }

  /** Returns the faults the service logged, or an empty text. */
  faults(): string {
    const lines = this.#posthorn.log().split('\n')
    return lines.filter((line) => line.startsWith('{')).join('\n')
  }

  createInboxes(count: number): Promise<Inbox[]> {
    return Promise.all(Array.from({ length: count }, () => whenAvailable(() => this.api.createInbox())))
  }

  async deleteInboxes(inboxes: Inbox[]): Promise<void> {
    for (const { id } of inboxes)
      await whenAvailable(async () => {
        await this.api.want(`/v1/inboxes/${id}`, { method: 'DELETE', status: 204 })
        return true
      })
  }

  /** Returns the measure after a garbage collection. */
  async measure(): Promise<Measure> {
    rmSync(this.#measures, { force: true })
    process.kill(this.#posthorn.pid, 'SIGUSR2')
    await until('the measure of the service', () => existsSync(this.#measures))
    return JSON.parse(readFileSync(this.#measures, 'utf8'))
  }
}

/** Repeats the request while the service answers 503, as it does when it gets little CPU time. */
async function whenAvailable<Result>(ask: () => Promise<Result>): Promise<NonNullable<Result>> {
  return await until('the service to be available', () =>
    ask().catch((error: Error) => {
      if (!error.message.includes('503 ')) throw error
      return null
    }),
  )
}
