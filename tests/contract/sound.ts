// Builds valid requests from the document: the path, query and body with which each operation succeeds.
import type { Acceptance, Inbox } from '../support/api.ts'
import { proveDomain, registerDomain } from '../support/customer-domain.ts'
import { until } from '../support/until.ts'
import type { Request } from './ask.ts'
import type { Operation } from './document.ts'
import { type Caller, mail, newKey, receiveFiles, type World } from './world.ts'

/** The caller's objects: an id for each path parameter, and the values that bodies need. */
export interface Property {
  ids: Record<string, string>
  inbox: Inbox
  /** Another inbox, for keys confined to it. */
  otherInboxId: string
  senderAddress: string
}

/** Returns ids in the same form that no object has. */
export function unknownIds({ ids }: Property): Property['ids'] {
  return Object.fromEntries(
    Object.entries(ids).map(([name, id]) => [
      name,
      name === 'attachmentId' ? id.replace(/_1$/, '_999') : id.replace(/[0-9a-f]{4}/g, '0000'),
    ]),
  )
}

let made = 0

/** Creates one of everything, through a node with every role. */
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
  // Nodes cache domains for up to 1 s.
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

/** Returns a request that the operation grants. Creates a new object if the request would consume it. */
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

/** Returns the operation's path with these ids. */
export function pathWith({ name, path }: Operation, ids: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
    const id = ids[parameter]
    if (id === undefined) throw new Error(`${name}: tests/contract/sound.ts has nothing for {${parameter}}`)
    return id
  })
}

/** Changes to the document's example body, by operation id. */
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

/** Creates an object for a deletion or cancellation and returns its ids, by operation id. */
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
