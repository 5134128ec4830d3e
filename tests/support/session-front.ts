// Repeats requests made with a key as dashboard requests of a signed-in member with the same restrictions.
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../../src/base/clock.ts'
import { newUuid, type OrganizationId, type PersonId } from '../../src/base/ids.ts'
import { hashSecret } from '../../src/flow/accounts/key.ts'
import { addMember, startSession } from '../../src/flow/people/sessions.ts'
import { pageToken } from '../../src/flow/people/tokens.ts'
import { errorAnswer } from '../../src/http/errors.ts'
import type { Db } from '../../src/postgres/db.ts'
import { insertPerson } from '../../src/store/people/people.ts'
import type { Scope } from './until.ts'

interface Service {
  base: string
  db: Db
  clock: Clock
}

interface KeyOfTest {
  id: string
  organizationId: OrganizationId
}

/** With POSTHORN_TEST_AS=session, the tests of keys run with sessions. */
export const actsBySession = process.env['POSTHORN_TEST_AS'] === 'session'

/** Returns an address to use instead of the service's own. It turns each key into the session of a matching member. */
export async function startSessionFront(scope: Scope, service: Service): Promise<string> {
  const agent = new Agent({ keepAlive: true })
  const server = createServer(async (asked, answer) => {
    const [token, chunks] = await Promise.all([
      findToken(service, asked.headers['x-api-key']),
      asked.toArray(),
    ])
    passOn(service.base, agent, token, { asked, body: Buffer.concat(chunks) }, answer)
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  scope.after(() => {
    agent.destroy()
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** By the key, for all nodes of a test. */
const tokens = new Map<string, Promise<string>>()

async function findToken(service: Service, secret: unknown): Promise<string | null> {
  if (typeof secret !== 'string') return null
  const known = tokens.get(secret)
  // If a test has broken the database, the key is passed unchanged.
  const key = await findKey(service.db, secret).catch((error) => {
    if (!known) throw error
    return 'unknown' as const
  })
  if (key === null) return null
  if (key !== 'unknown' && !known) tokens.set(secret, signInLike(service, key))
  return await tokens.get(secret)!
}

/** A usable key whose restrictions a member can have. Other keys get no session. */
async function findKey(db: Db, secret: string): Promise<KeyOfTest | null> {
  const [key] = await db.query<KeyOfTest>(
    `select id, organization_id as "organizationId" from api_key
    where hash = $1 and revoked_at is null and (expires_at is null or expires_at > now()) and allowed_ips is null`,
    [hashSecret(secret)],
  )
  return key ?? null
}

async function signInLike({ db, clock }: Service, { id, organizationId }: KeyOfTest): Promise<string> {
  const personId = newUuid<PersonId>()
  const at = clock.now()
  const email = `${personId}@people.test`
  await db.transaction(async (tx) => {
    await insertPerson(tx, {
      id: personId,
      email,
      name: 'x',
      passwordHash: null,
      confirmedAt: at,
      createdAt: at,
    })
    await addMember(tx, { organizationId, personId, email, role: 'owner', at })
    await tx.query(
      `update api_key m set kind = k.kind, scopes = k.scopes, inbox_ids = k.inbox_ids, send_mode = k.send_mode,
        allowed_recipient_domains = k.allowed_recipient_domains, requests_per_minute = k.requests_per_minute
      from api_key k where k.id = $1 and m.person_id = $2`,
      [id, personId],
    )
  })
  return (await startSession({ db, clock }, { personId, ip: '127.0.0.1', userAgent: 'a test', way: 'link' }))
    .token
}

function passOn(
  base: string,
  agent: Agent,
  token: string | null,
  { asked, body }: { asked: IncomingMessage; body: Buffer },
  answer: ServerResponse,
): void {
  const { 'x-api-key': _, connection: __, ...headers } = asked.headers
  const session: IncomingHttpHeaders = token
    ? { cookie: `__Host-posthorn=${token}`, 'x-posthorn-token': pageToken(token) }
    : {}
  const path = asked.url!.startsWith('/v1') ? `/app${asked.url}` : asked.url!
  const passed = request(base + path, {
    agent,
    method: asked.method,
    setHost: false,
    headers: { ...headers, host: new URL(base).host, origin: base, ...session },
  })
  passed.on('response', (response) => giveBack(response, answer))
  // The service stops reading a refused body, and its answer is on its way.
  passed.on('error', () => setTimeout(() => answer.headersSent || answer.destroy(), 500))
  answer.on('close', () => passed.destroy())
  // Sent whole, so that the sender of a refused body is not cut off while it writes.
  passed.end(body)
}

/** Rewrites the refusal of an unknown caller into the words for keys, the only difference between the two. */
function giveBack(response: IncomingMessage, answer: ServerResponse): void {
  const headers = { ...response.headers }
  delete headers['connection']
  delete headers['keep-alive']
  if (response.statusCode !== 401) {
    answer.writeHead(response.statusCode!, headers)
    response.pipe(answer)
    return
  }
  response.resume()
  const { error, message } = errorAnswer('unauthorized')
  const body = JSON.stringify({ error, message })
  answer.writeHead(401, { ...headers, 'content-length': Buffer.byteLength(body) })
  answer.end(body)
}
