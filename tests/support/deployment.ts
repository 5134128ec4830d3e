// Nodes that share one database, and callers who can use each of the sending operations.
import { randomUUID } from 'node:crypto'
import type { Role } from '../../src/config/settings.ts'
import type { Answer, Api, Inbox, Refusal, Submission } from './api.ts'
import { proveDomain } from './customer-domain.ts'
import { DnsServer } from './dns-server.ts'
import {
  type CallerOptions,
  makePlace,
  type Place,
  startNode,
  type TestCaller,
  type TestNode,
} from './node.ts'
import type { Scope } from './until.ts'

export interface Deployment {
  place: Place
  dns: DnsServer
  nodes: TestNode[]
  /** Moves the clock of every node. */
  advance(ms: number): void
}

interface DeployOptions {
  nodes: number
  env?: Record<string, string>
  roles?: Role[]
}

/** Nodes that take requests and deliver nothing, unless `roles` says otherwise. */
export async function deploy(
  scope: Scope,
  { nodes: count, env = {}, roles = ['api'] }: DeployOptions,
): Promise<Deployment> {
  const place = await makePlace(scope)
  const dns = await DnsServer.start()
  place.after(() => dns.close())
  const nodes: TestNode[] = []
  while (nodes.length < count)
    nodes.push(await startNode(place, { env: { POSTHORN_DNS: dns.address, ...env }, roles }))
  const advance = (ms: number) => {
    for (const { foundation } of nodes) foundation.clock.advance(ms)
  }
  return { place, dns, nodes, advance }
}

export type Operation = 'message' | 'reply' | 'send'
export const operations: Operation[] = ['message', 'reply', 'send']

/** The fields that the answers of all operations share. */
export type SendAnswer = Answer<
  Refusal & { replayed: boolean; submission: Submission; message?: { id: string } }
>

/** A caller with an inbox, a thread and a domain that is proved for sending. */
export interface Sender extends TestCaller {
  inbox: Inbox
  /** The thread of a reply. Replies go to `far.test`, by the `replyTo` of received mail or the `to` of sent mail. */
  thread: { id: string; messageId: string }
  from: string
}

let senders = 0

/** Its limits apply from the first message on. Creating it uses one message and one recipient. */
export async function makeSender(deployment: Deployment, options: CallerOptions = {}): Promise<Sender> {
  const caller = await deployment.nodes[0]!.createCaller(options)
  const name = `sender-${++senders}.example`
  await proveDomain(caller.api, deployment.dns, name, ['outbound'])
  const inbox = await caller.api.createInbox()
  const body = { to: [{ email: 'answers@far.test' }], subject: 'First', text: 'Hello.' }
  const { message } = await caller.api.want<{ message: { id: string; threadId: string } }>(
    `/v1/inboxes/${inbox.id}/messages`,
    { method: 'POST', idempotencyKey: randomUUID(), body, status: 202 },
  )
  return { ...caller, inbox, thread: { id: message.threadId, messageId: message.id }, from: `hello@${name}` }
}

export interface SendRequest {
  key?: string
  /** The number of recipients. A reply always has one. */
  recipients?: number
  change?: object
}

/** The path and the body of an operation. */
export function requestOf(
  sender: Sender,
  operation: Operation,
  { recipients = 1, change = {} }: SendRequest = {},
): { path: string; body: object } {
  const to = Array.from({ length: recipients }, (_, index) => ({ email: `r${index}@far.test` }))
  const { inbox, thread, from } = sender
  if (operation === 'message')
    return { path: `/v1/inboxes/${inbox.id}/messages`, body: { to, subject: 'S', text: 'T', ...change } }
  if (operation === 'send')
    return { path: '/v1/send', body: { from: { email: from }, to, subject: 'S', text: 'T', ...change } }
  const body = { targetMessageId: thread.messageId, text: 'T', ...change }
  return { path: `/v1/threads/${thread.id}/replies`, body }
}

/** Sends once by the operation. The caller checks the answer. */
export async function sendBy(
  api: Api,
  sender: Sender,
  operation: Operation,
  request: SendRequest = {},
): Promise<SendAnswer> {
  const { path, body } = requestOf(sender, operation, request)
  const call = { method: 'POST', idempotencyKey: request.key ?? randomUUID(), body }
  const answer = await api.call<SendAnswer['body'] & Submission>(path, call)
  if (operation === 'send' && answer.status === 202) answer.body.submission = answer.body
  return answer
}

/** The ids of the result. */
export function idsOf({ body: { message, submission } }: SendAnswer): string {
  return `${message?.id} ${submission.id}`
}

/** Counts the answers by status. */
export function countStatuses(answers: { status: number }[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
