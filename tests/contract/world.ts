// A node of the real service, its surroundings, and callers, with which proofs create their circumstances.
import { randomUUID } from 'node:crypto'
import type { KeyInput } from '../../src/flow/accounts/key.ts'
import { createOrganization, defaultLimits } from '../../src/flow/accounts/organization.ts'
import { Db } from '../../src/postgres/db.ts'
import type { Limits } from '../../src/store/accounts/organizations.ts'
import { addKey } from '../support/agent-key.ts'
import { Api, type Inbox, type Message } from '../support/api.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { type Domain, proveDomain, type Use } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, type Place, startNode, type TestNode } from '../support/node.ts'
import { actsBySession, startSessionFront } from '../support/session-front.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import { startReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { type Answer, ask, type Request } from './ask.ts'
import { ApiDocument } from './document.ts'
import { type Prove, provesBy } from './prove.ts'

export const largestContentBytes = 64 * 1024
export const largestDownloadBytes = 300_000

export interface World {
  place: Place
  node: TestNode
  base: string
  document: ApiDocument
  prove: Prove
  sink: Sink
  dns: DnsServer
  receiver: WebhookReceiver
  createCaller(options?: CallerOptions): Promise<Caller>
  /** Returns a caller of another node of the deployment for this node. */
  meet(caller: Pick<Caller, 'organizationId' | 'secret'>): Caller
}

export interface CallerOptions {
  key?: Partial<KeyInput>
  limits?: Partial<Limits>
  status?: 'pending' | 'active'
}

/** An organization with a key that may do everything, and with limits that nothing reaches unless a test sets them. */
export interface Caller {
  organizationId: string
  secret: string
  api: Api
  ask(method: string, path: string, more?: Omit<Request, 'method' | 'path'>): Promise<Answer>
  /** Creates another key of the same organization. */
  createKey(input: Partial<KeyInput>): Promise<{ keyId: string; secret: string }>
}

/** Starts everything that a node talks to, without a node. */
export async function makeSurroundings(scope: Scope) {
  const place = await makePlace(scope)
  const dns = await DnsServer.start()
  place.after(() => dns.close())
  const sink = await startSink(place)
  // Reports VIRUS as infected and fails on LIMITS. For WAIT it never gives a verdict.
  const clamd = await fakeClamd(place, (socket, received) => {
    const content = streamed(received)?.toString('latin1')
    if (content === undefined) return
    if (content.includes('VIRUS')) socket.end('stream: Some.Virus FOUND\0')
    else if (content.includes('LIMITS')) socket.end('INSTREAM size limit exceeded. ERROR\0')
    else socket.end(content.includes('WAIT') ? 'try again ERROR\0' : 'stream: OK\0')
  })
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_DNS: dns.address,
    POSTHORN_CLAMD: `${clamd.host}:${clamd.port}`,
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    POSTHORN_MAX_DOWNLOAD_SIZE: String(largestDownloadBytes),
  }
  return { place, dns, sink, receiver: await startReceiver(place), env }
}

/** Starts a node with every role in these surroundings. */
export async function makeWorld(scope: Scope): Promise<World> {
  const { env, ...surroundings } = await makeSurroundings(scope)
  const node = await startNode(surroundings.place, { env })
  return { ...surroundings, ...(await meetNode(surroundings.place, node)) }
}

/** Returns the node with its document, and ways to create its callers. */
export async function meetNode(
  place: Place,
  node: TestNode,
): Promise<Pick<World, 'node' | 'base' | 'document' | 'prove' | 'createCaller' | 'meet'>> {
  const { host, port } = node.app.listening.http!
  const own = `http://${host}:${port}`
  const base = actsBySession ? await frontOf(place, node, own) : own
  const document = await ApiDocument.fetch(base)
  const meet: World['meet'] = ({ organizationId, secret }) => ({
    organizationId,
    secret,
    api: new Api(() => base, secret),
    createKey: async (input) => greeted(base, await addKey(node, { organizationId }, input)),
    ask: (method, path, more = {}) => ask(base, { method, path, secret, ...more }),
  })
  const createCaller = async (options?: CallerOptions) =>
    meet(await greeted(base, await makeOrganization(node, options)))
  return { node, base, document, prove: provesBy(document), createCaller, meet }
}

/** If sessions replace the keys, opens the session before any check. */
async function greeted<Made extends { secret: string }>(base: string, made: Made): Promise<Made> {
  if (actsBySession) await ask(base, { method: 'GET', path: '/v1/me', secret: made.secret })
  return made
}

/** Uses its own database connection, because tests break the node's connection. */
async function frontOf(place: Place, { foundation: { clock } }: TestNode, base: string): Promise<string> {
  const db = new Db({ connection: place.connection })
  place.after(() => db.close())
  return await startSessionFront(place, { base, db, clock })
}

const generous: Limits = {
  ...defaultLimits,
  messagesPerMinute: 1e6,
  messagesPerDay: 1e6,
  recipientsPerDay: 1e6,
  requestsPerMinute: 1e6,
  recipientsPerMessage: 1000,
  inboxes: 1000,
  domains: 1000,
  webhookEndpoints: 1000,
  managedStarter: 1000,
  messageContentBytes: largestContentBytes,
}

async function makeOrganization(
  node: TestNode,
  { key = {}, limits = {}, status = 'active' }: CallerOptions = {},
): Promise<{ organizationId: string; secret: string }> {
  const { id } = await createOrganization(node.foundation, {
    name: 'Contract',
    status,
    limits: { ...generous, ...limits },
  })
  return { organizationId: id, secret: (await addKey(node, { organizationId: id }, key)).secret }
}

let domains = 0

/** Registers a domain of the caller and proves it for these uses. */
export async function proveOwn(
  { dns, node }: Pick<World, 'dns' | 'node'>,
  { api }: Caller,
  uses: Use[],
): Promise<Domain> {
  const domain = await proveDomain(api, dns, `contract-${++domains}.example`, uses)
  // Nodes cache domains for up to 1 s.
  node.foundation.clock.advance(1_100)
  return domain
}

/** Sends a mail to the inbox over SMTP. Returns its message once it is filed. */
export async function receive(
  { node }: Pick<World, 'node'>,
  { api }: Caller,
  inbox: Inbox,
  raw = 'From: someone@far.test\nSubject: Hello\n\nThere.\n',
): Promise<Message> {
  const mark = randomUUID()
  const bytes = Buffer.from(`Message-ID: <${mark}@far.test>\n${raw}`.replaceAll('\n', '\r\n'))
  const mail = { from: 'someone@far.test', to: inbox.address, raw: bytes }
  const { outcome, reply } = await sendMail(node.smtp, mail)
  if (outcome !== 'accepted') throw new Error(`the mail was ${outcome}: ${reply}`)
  return await until('the mail to be filed', async () => {
    const messages = await api.exported(inbox.id)
    return messages.find(({ internetMessageId }) => internetMessageId === `<${mark}@far.test>`)
  })
}

/** Receives a message with attachments of these contents. Returns the paths of their downloads. */
export async function receiveFiles(
  world: Pick<World, 'node'>,
  caller: Caller,
  inbox: Inbox,
  contents: string[],
): Promise<{ message: Message; paths: string[] }> {
  const parts = contents.map(
    (content) => `--b\nContent-Disposition: attachment; filename="Gr=?utf-8?q?=C3=BC?=n.txt"\n\n${content}\n`,
  )
  const head = 'From: someone@far.test\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nText\n'
  const message = await receive(world, caller, inbox, `${head}${parts.join('')}--b--\n`)
  const paths = message.attachments!.map(({ id }) => `/v1/messages/${message.id}/attachments/${id}`)
  return { message, paths }
}

/** A message that any recipient can get. */
export const mail = { to: [{ email: 'someone@far.test' }], subject: 'Hello', text: 'There' }

export const newKey = (): string => `contract-${randomUUID()}`

/** Makes the sink hold messages. `reached` resolves when it has one, and `release` lets them go. */
export function holdMessages(sink: Sink): { reached: Promise<void>; release: () => void } {
  const reached = Promise.withResolvers<void>()
  const held = Promise.withResolvers<null>()
  sink.rule = ({ stage }) => {
    if (stage !== 'message') return null
    reached.resolve()
    return held.promise
  }
  const release = () => {
    sink.rule = () => null
    held.resolve(null)
  }
  return { reached: reached.promise, release }
}
