// A browser as the service sees it: keeps cookies, and sends its origin and the page's token with every change.
import type { Clock } from '../../src/base/clock.ts'
import type { PersonId } from '../../src/base/ids.ts'
import { startSession } from '../../src/flow/people/sessions.ts'
import type { Db } from '../../src/postgres/db.ts'

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: what a test expects of an answer, it says where it looks at it.
  body: any
}

export class Browser {
  readonly #base: string
  readonly #cookies = new Map<string, string>()
  #pageToken = ''
  /** The last Set-Cookie received. */
  lastCookie = ''

  constructor(base: string) {
    this.#base = base
  }

  /** A browser in which the person is signed in. */
  static async of(
    { base, db, clock }: { base: string; db: Db; clock: Clock },
    personId: PersonId,
  ): Promise<Browser> {
    const browser = new Browser(base)
    const { token } = await startSession(
      { db, clock },
      { personId, ip: '127.0.0.1', userAgent: 'a test', way: 'link' },
    )
    browser.plant('__Host-posthorn', token)
    browser.#pageToken = (await browser.ask('GET', '/app/v1/session')).body.csrfToken
    return browser
  }

  /** Signs in by a link. Returns the person's session. */
  async signIn(token: string): Promise<{ csrfToken: string; organization: { id: string } | null }> {
    const { status, body } = await this.ask('POST', '/app/v1/session/link', { token })
    if (status !== 200) throw new Error(`not signed in: ${status} ${JSON.stringify(body)}`)
    this.#pageToken = body.csrfToken
    return body
  }

  plant(name: string, value: string): void {
    this.#cookies.set(name, value)
  }

  cookie(name: string): string | undefined {
    return this.#cookies.get(name)
  }

  /** Sends one request, without headers whose value is ''. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const own: Record<string, string> = {
      origin: this.#base,
      'x-posthorn-token': this.#pageToken,
      cookie: [...this.#cookies].map((pair) => pair.join('=')).join('; '),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    }
    const sent = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ''))
    const given = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(this.#base + path, { method, headers: sent, redirect: 'manual', ...given })
    for (const line of response.headers.getSetCookie()) this.#keep(line)
    const text = await response.text()
    const isJson = (response.headers.get('content-type') ?? '').startsWith('application/json')
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
  }

  #keep(line: string): void {
    this.lastCookie = line
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
    if (value === '') this.#cookies.delete(name!)
    else this.#cookies.set(name!, value!)
  }
}
