// A node of the real service, the world around it, and callers: what proofs bring their circumstances about with.
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
  /** A caller of another node of the deployment, at this one. */
  meet(caller: Pick<Caller, 'organizationId' | 'secret'>): Caller
}

export interface CallerOptions {
  key?: Partial<KeyInput>
  limits?: Partial<Limits>
  status?: 'pending' | 'active'
}

/** An organization with a key that may do everything, and limits that nothing here reaches unless it is told to. */
export interface Caller {
  organizationId: string
  secret: string
  api: Api
  ask(method: string, path: string, more?: Omit<Request, 'method' | 'path'>): Promise<Answer>
  /** Another key of the same organization. */
  createKey(input: Partial<KeyInput>): Promise<{ keyId: string; secret: string }>
}

/** All that a node talks to, without a node. */
export async function makeSurroundings(scope: Scope) {
  const place = await makePlace(scope)
  const dns = await DnsServer.start()
  place.after(() => dns.close())
  const sink = await startSink(place)
  // Finds what says VIRUS infected and fails what says LIMITS; of what says WAIT it never gives a verdict.
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

/** A node with every role among its surroundings. */
export async function makeWorld(scope: Scope): Promise<World> {
  const { env, ...surroundings } = await makeSurroundings(scope)
  const node = await startNode(surroundings.place, { env })
  return { ...surroundings, ...(await meetNode(surroundings.place, node)) }
}

/** The node with its document, and callers of it. */
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

/** Where a session stands for the key, it is opened before anything is looked at. */
async function greeted<Made extends { secret: string }>(base: string, made: Made): Promise<Made> {
  if (actsBySession) await ask(base, { method: 'GET', path: '/v1/me', secret: made.secret })
  return made
}

/** By a connection of its own, for tests take the node's away. */
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

/** A domain of the caller's that is proved for these uses. */
export async function proveOwn(
  { dns, node }: Pick<World, 'dns' | 'node'>,
  { api }: Caller,
  uses: Use[],
): Promise<Domain> {
  const domain = await proveDomain(api, dns, `contract-${++domains}.example`, uses)
  // What nodes know of domains is a second old at most.
  node.foundation.clock.advance(1_100)
  return domain
}

/** Sends a mail to the inbox over SMTP; answers its message once it is filed. */
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

/** A message with attachments of these contents; answers the paths of their downloads. */
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

/** A message that somebody can be sent. */
export const mail = { to: [{ email: 'someone@far.test' }], subject: 'Hello', text: 'There' }

export const newKey = (): string => `contract-${randomUUID()}`

/** Lets the far side keep messages waiting: `reached` once it has one, until `release`. */
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
