// Calls the operator's desk as its page does: opened by a link, with the cookie, the origin and the token for changes.
import assert from 'node:assert/strict'
import { createDeskLink } from '../../src/flow/people/operator-access.ts'
import type { TestNode } from './node.ts'

export interface Asked {
  method?: string
  body?: object
  /** Replace the page's headers; null removes one. */
  headers?: Record<string, string | null>
}

export interface DeskAnswer {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

export class DeskPage {
  readonly base: string
  cookie = ''
  token = ''

  constructor(base: string) {
    this.base = base
  }

  async ask(path: string, { method = 'GET', body, headers = {} }: Asked = {}): Promise<DeskAnswer> {
    const own = { origin: this.base, cookie: this.cookie, 'x-posthorn-token': this.token }
    const given = { ...own, ...(body && { 'content-type': 'application/json' }), ...headers }
    const sent = Object.entries(given).filter((pair): pair is [string, string] => pair[1] !== null)
    const response = await fetch(`${this.base}/desk/v1${path}`, {
      method,
      headers: sent,
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : {} }
  }

  /** The body of a success. */
  async get<Body = Record<string, unknown>>(path: string): Promise<Body> {
    const { status, body } = await this.ask(path)
    assert.equal(status, 200, JSON.stringify(body))
    return body as Body
  }

  async post<Body = Record<string, unknown>>(path: string, body?: object): Promise<Body> {
    const answer = await this.ask(path, { method: 'POST', ...(body && { body }) })
    assert.ok(answer.status < 300, JSON.stringify(answer.body))
    return answer.body as Body
  }

  /** Exchanges a link's token for a session. */
  async open(token: string): Promise<DeskAnswer> {
    const answer = await this.ask('/session', { method: 'POST', body: { token } })
    this.cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? this.cookie
    this.token = String(answer.body['csrfToken'] ?? this.token)
    return answer
  }
}

export function deskOf(node: TestNode): DeskPage {
  const { host, port } = node.app.listening.operator
  return new DeskPage(`http://${host}:${port}`)
}

/** A page of the desk, opened by a link of its own. */
export async function openedDesk(node: TestNode): Promise<DeskPage> {
  const desk = deskOf(node)
  const { token } = await createDeskLink(node.foundation)
  assert.equal((await desk.open(token)).status, 200)
  return desk
}
