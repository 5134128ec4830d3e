// A browser as the dashboard sees it: its cookies, the origin of its page, and the token that the page shows.
import { newUuid, type PersonId } from '../../../src/base/ids.ts'
import { ownOrganizationId } from '../../../src/flow/own-organization.ts'
import { addMember, startSession } from '../../../src/flow/people/sessions.ts'
import { insertPerson, type MemberRole } from '../../../src/store/people/people.ts'
import type { Caller, Stage } from '../stage.ts'

export interface Session {
  id: string
  csrfToken: string
  person: { id: string; email: string; name: string; hasPassword: boolean }
  organization: { id: string; name: string; status: string; role: string; serverKeys: boolean } | null
  organizations: { id: string; role: string }[]
}

export interface Answer<Body> {
  status: number
  headers: Headers
  body: Body
}

interface Call {
  method?: string
  body?: unknown
  headers?: Record<string, string>
}

type Refusal = { error: string; message: string }

export const password = 'correct horse battery staple'

let networks = 0

function nextAddress(): string {
  return `2001:db8:${(++networks).toString(16)}::1`
}

export class Visitor {
  readonly #stage: Pick<Stage, 'base' | 'db'>
  readonly cookies = new Map<string, string>()
  /** The client address that a trusted proxy reports. Each visitor has their own network. */
  ip = nextAddress()
  session: Session | null = null

  constructor(stage: Pick<Stage, 'base' | 'db'>) {
    this.#stage = stage
  }

  /** Sends one request below /app/v1, with everything that our pages send. */
  async call<Body = Refusal>(
    path: string,
    { method = 'GET', body, headers = {} }: Call = {},
  ): Promise<Answer<Body>> {
    const response = await fetch(`${this.#stage.base}/app/v1${path}`, {
      method,
      redirect: 'manual',
      headers: {
        ...(method !== 'GET' && { origin: this.#stage.base }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(this.session && { 'x-posthorn-token': this.session.csrfToken }),
        'x-forwarded-for': this.ip,
        cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    })
    for (const line of response.headers.getSetCookie()) this.#keep(line)
    const text = await response.text()
    const isJson = (response.headers.get('content-type') ?? '').includes('json')
    return {
      status: response.status,
      headers: response.headers,
      body: (isJson && text ? JSON.parse(text) : text) as Body,
    }
  }

  #keep(line: string): void {
    const [pair = '', ...attributes] = line.split('; ')
    const equals = pair.indexOf('=')
    const [name, value] = [pair.slice(0, equals), pair.slice(equals + 1)]
    if (attributes.includes('Max-Age=0')) this.cookies.delete(name)
    else this.cookies.set(name, value)
  }

  /** Returns the body of the answer. Throws unless the answer has the status. */
  async want<Body>(path: string, { status = 200, ...call }: Call & { status?: number } = {}): Promise<Body> {
    const answer = await this.call<Body>(path, call)
    if (answer.status !== status)
      throw new Error(`${call.method ?? 'GET'} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  post<Body = Refusal>(path: string, body: unknown): Promise<Answer<Body>> {
    return this.call<Body>(path, { method: 'POST', body })
  }

  /** Makes a call that signs in, and keeps the session it returns. */
  async enter(path: string, body: unknown): Promise<Session> {
    this.session = null
    this.session = await this.want<Session>(path, { method: 'POST', body })
    return this.session
  }

  /** Reads the session again, as a newly opened page does. */
  async reload(): Promise<Session> {
    this.session = await this.want<Session>('/session')
    return this.session
  }

  /** Signs up, follows the link in the mail, and returns the session. */
  async signUp(email: string): Promise<Session> {
    const body = { email, password, name: 'Ada Lovelace' }
    await this.want('/sign-up', { method: 'POST', status: 202, body })
    return await this.enter('/confirmations', { token: await lastToken(this.#stage, email) })
  }

  async signIn(email: string, given = password): Promise<Session> {
    return await this.enter('/session', { email, password: given })
  }
}

interface Letter {
  to: string
  subject: string
  text: string
}

/** Returns the service's letters to the address, oldest first. */
export async function lettersTo({ db }: Pick<Stage, 'db'>, email: string): Promise<Letter[]> {
  return await db.query<Letter>(
    `select $2::text as "to", subject, text from message
    where organization_id = $1 and recipients->'to'->0->>'email' = $2 and direction = 'outbound' order by id`,
    [ownOrganizationId, email],
  )
}

/** Returns the secret of the link in the last letter to the address. */
export async function lastToken(stage: Pick<Stage, 'db'>, email: string): Promise<string> {
  const letters = await lettersTo(stage, email)
  const found = /#([A-Za-z0-9_-]{43})\s/.exec(letters.at(-1)?.text ?? '')
  if (!found) throw new Error(`no link for ${email}: ${JSON.stringify(letters.at(-1))}`)
  return found[1]!
}

let people = 0

/** Signs up a new person and, if a caller is given, adds them to the caller's organization. */
export async function enterAs(stage: Stage, caller?: Caller, role: MemberRole = 'owner'): Promise<Visitor> {
  const visitor = new Visitor(stage)
  const email = `person-${++people}@far.test`
  const { person } = await visitor.signUp(email)
  if (!caller) return visitor
  await join(stage, caller, { id: person.id as PersonId, email }, role)
  await visitor.signIn(email)
  return visitor
}

/** Makes the person a member, as accepting an invitation does. */
export async function join(
  { db, clock }: Stage,
  { organizationId }: Pick<Caller, 'organizationId'>,
  { id: personId, email }: { id: PersonId; email: string },
  role: MemberRole,
): Promise<void> {
  const member = { organizationId: organizationId as never, personId, email, role, at: clock.now() }
  await db.transaction((tx) => addMember(tx, member))
}

/** Creates a person without a password and opens a session without a sign-in. Much faster than `enterAs`. */
export async function enterDirectly(
  stage: Stage,
  organizationId: string,
  role: MemberRole = 'owner',
): Promise<Visitor> {
  const { db, clock } = stage
  const [id, createdAt] = [newUuid<PersonId>(), clock.now()]
  const person = { id, email: `${id}@far.test`, name: 'Ada', passwordHash: null }
  await db.transaction((tx) => insertPerson(tx, { ...person, confirmedAt: createdAt, createdAt }))
  await join(stage, { organizationId }, person, role)
  return await openAs(stage, id)
}

/** Opens a browser in which the person is signed in. */
export async function openAs(stage: Stage, personId: PersonId): Promise<Visitor> {
  const visitor = new Visitor(stage)
  const { token } = await startSession(stage, { personId, ip: visitor.ip, userAgent: 'a test', way: 'link' })
  visitor.cookies.set('__Host-posthorn', token)
  await visitor.reload()
  return visitor
}
