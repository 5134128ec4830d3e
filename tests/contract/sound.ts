// Sound requests, made out of the document: what stands in each operation's path, query and body so that it succeeds.
import type { Acceptance, Inbox } from '../support/api.ts'
import { proveDomain, registerDomain } from '../support/customer-domain.ts'
import { until } from '../support/until.ts'
import type { Request } from './ask.ts'
import type { Operation } from './document.ts'
import { type Caller, mail, newKey, receiveFiles, type World } from './world.ts'

/** What the caller owns: an id for each name that stands in a path, and what bodies speak of. */
export interface Property {
  ids: Record<string, string>
  inbox: Inbox
  /** Another inbox, for keys that may only use that one. */
  otherInboxId: string
  senderAddress: string
}

/** Ids that nothing has, of the form that those of the property have. */
export function unknownIds({ ids }: Property): Property['ids'] {
  return Object.fromEntries(
    Object.entries(ids).map(([name, id]) => [
      name,
      name === 'attachmentId' ? id.replace(/_1$/, '_999') : id.replace(/[0-9a-f]{4}/g, '0000'),
    ]),
  )
}

let made = 0

/** Acquires one of everything, through a node with every role. */
export async function acquire(world: World, caller: Caller): Promise<Property> {
  const { api } = caller
  const webhook = await api.want<{ id: string }>('/v1/webhooks', {
    method: 'POST',
    body: { url: world.receiver.url('/acquired') },
    status: 201,
  })
  const [inbox, other] = [await api.createInbox(), await api.createInbox()]
  const { message, paths } = await receiveFiles(world, caller, inbox, ['harmless'])
  await until('the scan', async () => (await caller.ask('GET', paths[0]!)).status === 200)
  const { submissionId } = await sendOne(caller, { inbox })
  const domain = await proveDomain(api, world.dns, `made-${++made}.example`, ['outbound'])
  // What nodes know of domains is a second old at most.
  world.node.foundation.clock.advance(1_100)
  const delivery = await until('a webhook to be called', async () => {
    const path = `/v1/webhooks/${webhook.id}/deliveries`
    return (await api.want<{ deliveries: { id: string }[] }>(path)).deliveries[0]
  })
  return {
    ids: {
      inboxId: inbox.id,
      messageId: message.id,
      threadId: message.threadId,
      attachmentId: message.attachments![0]!.id,
      submissionId,
      domainId: domain.id,
      webhookId: webhook.id,
      deliveryId: delivery.id,
    },
    inbox,
    otherInboxId: other.id,
    senderAddress: `tables@${domain.domain}`,
  }
}

/** A request that the operation grants; what it would use up or delete is made for it alone. */
export async function soundRequest(
  operation: Operation,
  caller: Caller,
  property: Property,
): Promise<Request> {
  const ids = { ...property.ids, ...(await victims[operation.id]?.(caller, property)) }
  const body = operation.example && {
    ...operation.example,
    ...(await bodies[operation.id]?.(caller, property)),
  }
  return {
    method: operation.method,
    path: pathWith(operation, ids),
    secret: caller.secret,
    ...(operation.headers.includes('idempotency-key') && { idempotencyKey: newKey() }),
    ...(body && { body }),
  }
}

/** The operation's path with these ids in it. */
export function pathWith({ name, path }: Operation, ids: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
    const id = ids[parameter]
    if (id === undefined) throw new Error(`${name}: tests/contract/sound.ts has nothing for {${parameter}}`)
    return id
  })
}

/** What bodies say in place of the document's example, by operation id. */
const bodies: Record<string, (caller: Caller, property: Property) => object | Promise<object>> = {
  send: (_, { senderAddress }) => ({ from: { email: senderAddress } }),
  replyToThread: (_, { ids }) => ({ targetMessageId: ids['messageId'] }),
  registerDomain: () => ({ domain: `made-${++made}.example` }),
  changeWebhook: () => ({ description: `made ${++made}` }),
  createSuppression: () => ({ email: `made-${++made}@far.test` }),
  deleteSuppression: async ({ api }) => {
    const email = `made-${++made}@far.test`
    await api.want('/v1/suppressions', { method: 'POST', body: { email }, status: 201 })
    return { email }
  },
}

type Ids = Record<string, string>

/** Ids of what a deletion or a cancellation may have, by operation id. */
const victims: Record<string, (caller: Caller, property: Property) => Promise<Ids>> = {
  cancelSubmission: sendOne,
  deleteInbox: async ({ api }) => ({ inboxId: (await api.createInbox()).id }),
  deleteMessage: sendOne,
  deleteDomain: async ({ api }) => ({ domainId: (await registerDomain(api, `made-${++made}.example`)).id }),
  deleteWebhook: async ({ api }) => {
    const body = { url: 'https://app.example.com/' }
    return {
      webhookId: (await api.want<{ id: string }>('/v1/webhooks', { method: 'POST', body, status: 201 })).id,
    }
  },
}

async function sendOne(
  { api }: Caller,
  { inbox }: Pick<Property, 'inbox'>,
): Promise<{ messageId: string; submissionId: string }> {
  const { message, submission } = await api.want<Acceptance>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    idempotencyKey: newKey(),
    body: mail,
    status: 202,
  })
  return { messageId: message.id, submissionId: submission.id }
}
