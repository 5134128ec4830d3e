// The API over the real service's parts in this process, with its own database and without delivery.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { Clock } from '../../src/base/clock.ts'
import { SecretBox } from '../../src/base/secret-box.ts'
import { DiskBlobs } from '../../src/blobs/disk.ts'
import { defaultRetention } from '../../src/config/setting-values.ts'
import { HopsInTime } from '../../src/dns/hops-in-time.ts'
import { HopFinder } from '../../src/dns/mx.ts'
import { isPublicUnicast } from '../../src/dns/public-address.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { KeyRing, RequestRate } from '../../src/flow/accounts/authenticate.ts'
import { createKey, type KeyInput, unrestricted } from '../../src/flow/accounts/key.ts'
import { createOrganization, defaultLimits } from '../../src/flow/accounts/organization.ts'
import type { OidcSettings } from '../../src/flow/people/oidc.ts'
import { Passwords } from '../../src/flow/people/passwords.ts'
import { ProvedDomains } from '../../src/flow/proved-domains.ts'
import { fileSpooled } from '../../src/flow/receiving/file.ts'
import { Receiver } from '../../src/flow/receiving/receive.ts'
import { InboxSearches } from '../../src/flow/searching/search-inbox.ts'
import { Acceptance } from '../../src/flow/sending/accept-send.ts'
import { SendContents } from '../../src/flow/sending/send-contents.ts'
import { Validation } from '../../src/flow/validation/validate.ts'
import { OpenConnections } from '../../src/http/connections.ts'
import { presentEvent, presentMessage, presentSubmission } from '../../src/http/present.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { EventStreams } from '../../src/http/stream/event-streams.ts'
import { MessageWaits } from '../../src/http/stream/message-waits.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import { Db } from '../../src/postgres/db.ts'
import { createDashboard } from '../../src/roles/dashboard.ts'
import { Signals } from '../../src/roles/signals.ts'
import type { Limits } from '../../src/store/accounts/organizations.ts'
import { AddressGuard } from '../../src/webhook/address-guard.ts'
import { Api } from '../support/api.ts'
import { type JoinedNode, joinAsNode } from '../support/claims.ts'
import { testDatabase } from '../support/postgres.ts'
import { senderChecks } from '../support/sender-checks.ts'
import type { Scope } from '../support/until.ts'

const managedDomain = 'inbox.test'
export const largestContentBytes = 64 * 1024

export interface Stage {
  base: string
  port: number
  db: Db
  clock: Clock
  blobs: DiskBlobs
  passwords: Passwords
  /** Claims under the number of a running node. */
  claims: JoinedNode['claims']
  /** Everything logged so far. */
  log(): string
  /** Creates an organization with one key. */
  createCaller(options?: CallerOptions): Promise<Caller>
  /** Receives and files a message as the MX does, without SMTP. */
  receive(to: string, raw: string | Buffer): Promise<void>
}

export interface CallerOptions {
  key?: Partial<KeyInput>
  limits?: Partial<Limits>
  status?: 'pending' | 'active'
}

export interface Caller {
  organizationId: string
  keyId: string
  secret: string
  api: Api
  /** Creates another key of the same organization. */
  createKey(input: Partial<KeyInput>): Promise<{ secret: string; api: Api }>
}

interface StageOptions {
  trustedProxies?: string[]
  /** The DNS server that validation queries, as `ip:port`. By default no server listens at the address. */
  dnsServer?: string
  isSignUpOpen?: boolean
  oidc?: OidcSettings
  /** Cheap by default. In production, hashing a password takes 0.27 s of CPU, and tests sign up hundreds of people. */
  passwords?: Passwords
}

const lifetimeMs = 72 * 3_600_000

export async function setStage(
  scope: Scope,
  {
    trustedProxies = [],
    dnsServer = '127.0.0.1:1',
    isSignUpOpen = true,
    oidc,
    passwords = new Passwords({ memory: 1024, passes: 1, parallelism: 1 }),
  }: StageOptions = {},
): Promise<Stage> {
  const db = new Db({ connection: await testDatabase(scope) })
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-http-'))
  const clock = new Clock()
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line) => void lines.push(line) })
  const [secretBox, blobs] = [new SecretBox(randomBytes(32)), new DiskBlobs(folder)]
  const isLocal = (domain: string) => domain === managedDomain
  const routePolicy = { mode: 'capture' as const, isLocal, choosePool: () => null }
  const domains = new ProvedDomains({ db, clock })
  const parsePool = new ParsePool({ threads: 1, timeoutMs: 5_000 })
  const signals = new Signals({ send: () => {} })
  const acceptance = new Acceptance({
    db,
    clock,
    log,
    blobs,
    domains,
    routePolicy,
    lifetimeMs,
    contents: new SendContents({ db, clock, blobs, parsePool }),
    accepted: ({ inboxId }) => signals.announced(inboxId ? [inboxId] : []),
  })
  const settings = {
    publicUrl: 'http://127.0.0.1',
    managedDomain,
    mailHost: 'mx.test',
    trustedProxies,
    isHttpsOn: false,
    hasAcme: true,
    maxDownloadBytes: 300_000,
    bodyMemoryBytes: 256 << 20,
  }
  const access = {
    isDevelopment: true,
    delivery: 'capture' as const,
    managedDomain,
    defaultLimits,
    isSignUpOpen,
    oidc: oidc ?? null,
    retention: defaultRetention,
    retryLifetimeMs: lifetimeMs,
    workers: 1,
  }
  const resolver = new Resolver({ servers: [dnsServer], timeoutMs: 1_000 })
  const hopFinder = new HopFinder({ resolver, isAllowed: () => true, clock, deadlineMs: 5_000 })
  const none = { added: new Set<string>(), removed: new Set<string>() }
  const listChanges = { disposable: none, freeProviders: none, roles: none }
  const validation = new Validation({ db, hopsInTime: new HopsInTime({ hopFinder, clock }), listChanges })
  const keys = { keyRing: new KeyRing({ db, clock }), requestRate: new RequestRate({ db, clock }) }
  const present = {
    message: presentMessage,
    submission: presentSubmission,
    event: presentEvent,
    domain: async () => null,
  }
  const eventStreams = new EventStreams({ db, clock, log, present, announced: signals.streams })
  const isOutside = { isPublic: isPublicUnicast, allowPrivateNetworks: false, isDevelopment: false }
  const messageWaits = new MessageWaits({ db, clock, log, grown: signals.grown, changed: signals.waits })
  const inboxSearches = new InboxSearches({ db, clock, log, parsePool })
  const events = { eventStreams, inboxSearches, messageWaits, addressGuard: new AddressGuard(isOutside) }
  const server = createHttpServer({
    db,
    clock,
    log,
    secretBox,
    ...keys,
    acceptance,
    validation,
    resolver,
    blobs,
    settings,
    ...events,
    domains,
    mtaStsMode: () => 'testing' as const,
    wrote: () => signals.announced(),
    dashboard: {
      ...createDashboard({ db, clock, log, secretBox, settings: access }, acceptance, parsePool),
      passwords,
      pagesFolder: join(folder, 'pages'),
    },
  })
  new OpenConnections({ trustedProxies }).bound(server.server)
  const base = await server.listen({ host: '127.0.0.1', port: 0 })
  const endings: (() => void | Promise<void>)[] = []
  const joined = await joinAsNode({ after: (end) => void endings.push(end) }, { db, clock })
  const filing = { db, clock, log, blobs, parsePool, claims: joined.claims('mail') }
  scope.after(async () => {
    await Promise.all([messageWaits.stop(), eventStreams.stop(), inboxSearches.stop()])
    const closed = server.close()
    // Node does not count a client's unused spare connection as idle, and would wait for it.
    server.server.closeAllConnections()
    await closed
    await parsePool.close()
    for (const end of endings) await end()
    await db.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const receiver = new Receiver({
    db,
    clock,
    log,
    blobs,
    secretBox,
    hostname: 'mx.test',
    disk: { isShort: false },
    isTrusted: () => true,
    isLocal: routePolicy.isLocal,
    domains,
    senderChecks: senderChecks({ clock, blobs }),
    wake: () => {},
  })
  const onFiled = (messages: readonly { inboxId: string }[]) =>
    signals.announced(messages.map(({ inboxId }) => inboxId))
  return {
    base,
    db,
    clock,
    blobs,
    passwords,
    claims: joined.claims,
    port: Number(new URL(base).port),
    log: () => lines.join(''),
    createCaller: (options) => createCaller({ db, clock }, base, options),
    receive: async (to, raw) => {
      await take(receiver, to, raw)
      await fileSpooled({ ...filing, onFiled }, 10)
    },
  }
}

async function take(receiver: Receiver, to: string, raw: string | Buffer): Promise<void> {
  const path = (address: string) => {
    const [localPart = '', domain = ''] = address.split('@')
    return { localPart, domain, address }
  }
  const tls = { encrypted: false, protocol: 'none', cipher: 'none' }
  const incoming = receiver.message({
    peer: {
      address: '192.0.2.7',
      port: 25,
      helo: 'far.test',
      protocol: 'ESMTP',
      tls,
      isOwn: false,
      listedBy: [],
    },
    from: { ...path('someone@far.test'), sizeBytes: null, body: null, needsUtf8: false },
    to: [path(to)],
  })
  await incoming.write(Buffer.isBuffer(raw) ? raw : Buffer.from(raw.replaceAll('\n', '\r\n')))
  const answer = await incoming.end()
  if (!String(JSON.stringify(answer)).includes('250'))
    throw new Error(`not received: ${JSON.stringify(answer)}`)
}

const generous: Limits = {
  ...defaultLimits,
  messagesPerMinute: 1e6,
  messagesPerDay: 1e6,
  recipientsPerDay: 1e6,
  requestsPerMinute: 1e6,
  recipientsPerMessage: 1000,
  inboxes: 1000,
  managedStarter: 1000,
  messageContentBytes: largestContentBytes,
}

async function createCaller(
  deps: { db: Db; clock: Clock },
  base: string,
  { key, limits, status = 'active' }: CallerOptions = {},
): Promise<Caller> {
  const organization = await createOrganization(deps, {
    name: 'Test',
    status,
    limits: { ...generous, ...limits },
  })
  const make = async (input: Partial<KeyInput>) => {
    const made = await createKey(deps, {
      ...unrestricted,
      name: 'test',
      ...input,
      organizationId: organization.id,
    })
    return { keyId: made.key.id, secret: made.secret, api: new Api(() => base, made.secret) }
  }
  return { organizationId: organization.id, ...(await make(key ?? {})), createKey: make }
}

/** Sends exactly the given request. `fetch` would correct it. */
export async function ask(
  stage: Stage,
  method: string,
  path: string,
  options: { secret?: string; headers?: Record<string, string>; body?: string | Buffer } = {},
): Promise<{
  status: number
  headers: Headers
  body: { error?: string; message?: string } & Record<string, unknown>
}> {
  const headers = { ...(options.secret && { 'x-api-key': options.secret }), ...options.headers }
  const response = await fetch(stage.base + path, { method, headers, body: options.body ?? null })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : {} }
}
