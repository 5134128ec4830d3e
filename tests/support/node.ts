// The real service in this process, over a test's database: every role, real sockets, and a clock that a test moves.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { type App, startApp } from '../../src/app.ts'
import { type Role, readSettings } from '../../src/config/settings.ts'
import { createKey, type KeyInput, unrestricted } from '../../src/flow/accounts/key.ts'
import { createOrganization, defaultLimits } from '../../src/flow/accounts/organization.ts'
import { type Foundation, openFoundation } from '../../src/foundation.ts'
import type { DbOptions } from '../../src/postgres/db.ts'
import type { Limits } from '../../src/store/accounts/organizations.ts'
import { type Acceptance, Api, type Inbox, type Submission } from './api.ts'
import { countStart } from './count-start.ts'
import { testDatabase } from './postgres.ts'
import { type Scope, until } from './until.ts'

/** A database and a folder. Nodes in the same place are one deployment. Resources started last end first. */
export interface Place extends Scope {
  connection: DbOptions['connection']
  /** Holds the secret key that the nodes share, and a data folder for each. */
  folder: string
}

export interface TestNode {
  app: App
  foundation: Foundation
  smtp: { host: string; port: number }
  /** Everything logged so far, one JSON document per line. */
  log(): string
  /** A caller of this node with an organization of its own. */
  createCaller(options?: CallerOptions): Promise<TestCaller>
  /** The same key, at this node. */
  meet(caller: Pick<TestCaller, 'secret'>): Api
  stop(): Promise<void>
}

export interface CallerOptions {
  key?: Partial<KeyInput>
  limits?: Partial<Limits>
}

export interface TestCaller {
  organizationId: string
  keyId: string
  secret: string
  api: Api
}

interface NodeOptions {
  env?: Record<string, string>
  roles?: Role[]
}

const unlimited: Limits = {
  ...defaultLimits,
  messagesPerMinute: 10_000_000,
  messagesPerDay: 10_000_000,
  recipientsPerDay: 10_000_000,
  receivedMessagesPerDay: 10_000_000,
  receivedBytesPerDay: 2 ** 50,
  storedBytes: 2 ** 50,
  recipientsPerMessage: 1000,
  inboxes: 10_000,
  managedStarter: 10_000,
  requestsPerMinute: 10_000_000,
}

/** A fresh database and a folder. Both are removed with the scope. */
export async function makePlace(scope: Scope): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-node-'))
  writeFileSync(join(folder, 'secret-key'), randomBytes(32).toString('hex'), { mode: 0o600 })
  const endings = [() => rmSync(folder, { recursive: true, force: true })] as (() => void | Promise<void>)[]
  const after = (end: () => void | Promise<void>) => void endings.push(end)
  scope.after(async () => {
    for (const end of endings.reverse()) await end()
  })
  return { connection: await testDatabase({ after }), folder, after }
}

/** Starts a node. It stops before its place ends. */
export async function startNode(place: Place, options: NodeOptions = {}): Promise<TestNode> {
  countStart()
  const settings = readSettings({
    POSTHORN_DATA_DIR: join(place.folder, randomUUID()),
    POSTHORN_BLOB_URL: `file:${join(place.folder, 'blobs')}`,
    POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
    POSTHORN_DATABASE_URL: urlOf(place.connection),
    POSTHORN_HTTP: '127.0.0.1:0',
    POSTHORN_OPERATOR: '127.0.0.1:0',
    POSTHORN_SMTP: '127.0.0.1:0',
    POSTHORN_SMTP_TRUSTED: '127.0.0.0/8',
    // No DNS server listens there, so every query fails at once and none leaves the machine.
    POSTHORN_DNS: '127.0.0.1:9',
    POSTHORN_MANAGED_DOMAIN: 'inbox.test',
    ...options.env,
  })
  const lines: string[] = []
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(line) })
  const foundation = await openFoundation(settings, log, () => {})
  const app = await startApp(foundation, options.roles ?? settings.roles).catch(async (error) => {
    await foundation.close()
    throw error
  })
  let stopping: Promise<void> | null = null
  const stop = () => (stopping ??= app.stop().then(() => foundation.close()))
  place.after(stop)
  const { http, smtp } = app.listening
  const host = http?.host.includes(':') ? `[${http.host}]` : http?.host
  const meet = ({ secret }: { secret: string }) => new Api(() => `http://${host}:${http?.port}`, secret)
  const createCaller = async (asked: CallerOptions = {}) => {
    const made = await makeCaller(foundation, asked)
    return { ...made, api: meet(made) }
  }
  return {
    app,
    foundation,
    smtp: smtp ?? { host: '', port: 0 },
    log: () => lines.join(''),
    createCaller,
    meet,
    stop,
  }
}

/** An organization with unreachable limits unless `limits` sets them, and a key that may do everything. */
async function makeCaller(deps: Foundation, { key = {}, limits = {} }: CallerOptions) {
  const organization = await createOrganization(deps, {
    name: 'Test',
    status: 'active',
    limits: { ...unlimited, ...limits },
  })
  const made = await createKey(deps, {
    ...unrestricted,
    organizationId: organization.id,
    name: 'test',
    ...key,
  })
  return { organizationId: organization.id, keyId: made.key.id, secret: made.secret }
}

/** Writes the folder of a Unix socket as a URL does. */
export function urlOf(connection: DbOptions['connection']): string {
  if ('connectionString' in connection) return connection.connectionString
  const { host, port, user, database } = connection
  return `postgres://${user}@localhost/${database}?${new URLSearchParams({ host, port: String(port) })}`
}

/** Sends a message from the inbox, which must be accepted. */
export async function send(
  api: Api,
  inbox: Inbox,
  to: string[],
  { key = randomUUID(), text = 'Hello.' }: { key?: string; text?: string } = {},
): Promise<Acceptance> {
  const body = { to: to.map((email) => ({ email })), subject: 'Test', text }
  const path = `/v1/inboxes/${inbox.id}/messages`
  return await api.want(path, { method: 'POST', status: 202, idempotencyKey: key, body })
}

/** Waits until the submission's recipients have these states, in order. */
export async function untilStates(api: Api, submissionId: string, ...states: string[]): Promise<Submission> {
  const wanted = states.join(' ')
  let seen = ''
  return await until(`the recipients of ${submissionId} to be ${wanted}`, async () => {
    const submission = await api.want<Submission>(`/v1/submissions/${submissionId}`)
    seen = submission.recipients.map(({ status }) => status).join(' ')
    return seen === wanted ? submission : null
  }).catch((error) => {
    throw new Error(`${error.message}; they were ${seen}`)
  })
}
