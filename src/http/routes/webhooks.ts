// Webhooks: make, list, show, change, rotate, test and delete them; list their deliveries and replay one.
import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { requireWholeOrganization } from '../../flow/caller.ts'
import {
  changeWebhook,
  deleteWebhook,
  openWebhook,
  readWebhook,
  replayCall,
  rotateSecret,
  testWebhook,
} from '../../flow/events/endpoints.ts'
import { listWebhookDeliveries, type WebhookDeliveryRow } from '../../store/events/webhook-deliveries.ts'
import { listWebhooks, type WebhookRow } from '../../store/events/webhooks.ts'
import type { Api, HttpDeps } from '../api.ts'
import { RequestFault } from '../body/request-fault.ts'
import { byId, type Cursors, pageQuery, readLimit } from '../lists.ts'
import { endpointCalls } from '../schemas/announcement.ts'
import { Nothing } from '../schemas/scalars.ts'
import {
  NewWebhook,
  Webhook,
  WebhookChange,
  WebhookDelivery,
  WebhookDeliveryList,
  WebhookDeliveryParams,
  WebhookList,
  WebhookParams,
  WebhookWithSecret,
} from '../schemas/webhook.ts'

const scope = 'webhook:manage'
const refusals = ['inbox_not_allowed', 'not_found'] as const
const tags = ['Webhooks']
const PageQuery = Type.Object(pageQuery, { additionalProperties: false })

export function webhookRoutes(api: Api, deps: HttpDeps, cursors: Cursors): void {
  addCreate(api, deps)
  addList(api, cursors)
  addShow(api)
  addChange(api, deps)
  addRotate(api, deps)
  addTest(api, deps)
  addDelete(api, deps)
  addDeliveries(api, cursors)
  addReplay(api, deps)
}

/** The guard explains a wrong URL better than the pattern does. */
function refuseUrl(guard: HttpDeps['addressGuard']) {
  return async ({ body }: FastifyRequest): Promise<void> => {
    const url = (body as { url?: unknown } | null | undefined)?.url
    const refusal = typeof url === 'string' ? guard.refusalOf(url) : null
    if (refusal) throw new RequestFault('invalid_request', `/url ${refusal}`)
  }
}

function addCreate(api: Api, { db, clock, secretBox, addressGuard }: HttpDeps): void {
  api.post(
    '/v1/webhooks',
    {
      preValidation: refuseUrl(addressGuard),
      config: { scope, refusals: ['inbox_not_allowed', 'limit_reached'], callbacks: endpointCalls },
      schema: {
        operationId: 'createWebhook',
        tags,
        summary: 'Create a webhook endpoint',
        description: 'Returns the secret. It is shown only once.',
        querystring: Nothing,
        body: NewWebhook.ref,
        response: { 201: WebhookWithSecret.ref },
      },
    },
    async ({ caller, body }, reply) => {
      const deps = { db, clock, secretBox, guard: addressGuard }
      const { webhook, secret } = await openWebhook(deps, caller, body)
      return reply.code(201).send({ ...present(webhook), secret })
    },
  )
}

function addList(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/webhooks',
    {
      preValidation: readLimit,
      config: { scope, refusals: ['invalid_cursor', 'inbox_not_allowed'] },
      schema: {
        operationId: 'listWebhooks',
        tags,
        summary: 'List webhook endpoints',
        description: 'Newest first, without their secrets.',
        querystring: PageQuery,
        response: { 200: WebhookList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { organizationId } = caller
      const name = { list: 'webhooks', organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, async (before, limit) => {
        requireWholeOrganization(caller)
        return await listWebhooks(db, organizationId, before, limit)
      })
      return { webhooks: page.map(present), nextCursor }
    },
  )
}

function addShow(api: Api): void {
  api.get(
    '/v1/webhooks/:webhookId',
    {
      config: { scope, refusals: [...refusals] },
      schema: {
        operationId: 'getWebhook',
        tags,
        summary: 'Show a webhook endpoint',
        params: WebhookParams,
        querystring: Nothing,
        response: { 200: Webhook.ref },
      },
    },
    async ({ caller, params, db }) => present(await readWebhook(db, caller, params.webhookId)),
  )
}

function addChange(api: Api, { db, clock, addressGuard }: HttpDeps): void {
  api.patch(
    '/v1/webhooks/:webhookId',
    {
      preValidation: refuseUrl(addressGuard),
      config: { scope, refusals: [...refusals] },
      schema: {
        operationId: 'changeWebhook',
        tags,
        summary: 'Change a webhook endpoint',
        params: WebhookParams,
        querystring: Nothing,
        body: WebhookChange.ref,
        response: { 200: Webhook.ref },
      },
    },
    async ({ caller, params, body }) =>
      present(await changeWebhook({ db, clock, guard: addressGuard }, caller, params.webhookId, body)),
  )
}

function addRotate(api: Api, { db, clock, secretBox }: HttpDeps): void {
  api.post(
    '/v1/webhooks/:webhookId/rotate-secret',
    {
      config: { scope, refusals: [...refusals] },
      schema: {
        operationId: 'rotateWebhookSecret',
        tags,
        summary: 'Rotate the secret of a webhook endpoint',
        description:
          'For 24 hours, calls have two signatures: one by the new secret and one by the old secret.',
        params: WebhookParams,
        querystring: Nothing,
        response: { 200: WebhookWithSecret.ref },
      },
    },
    async ({ caller, params }) => {
      const { webhook, secret } = await rotateSecret({ db, clock, secretBox }, caller, params.webhookId)
      return { ...present(webhook), secret }
    },
  )
}

function addTest(api: Api, { db, clock }: HttpDeps): void {
  api.post(
    '/v1/webhooks/:webhookId/test',
    {
      config: { scope, refusals: [...refusals] },
      schema: {
        operationId: 'testWebhook',
        tags,
        summary: 'Test a webhook endpoint',
        description:
          "Sends a `webhook.test` event, regardless of the endpoint's event types. The endpoint's deliveries show the result.",
        params: WebhookParams,
        querystring: Nothing,
        response: { 202: Webhook.ref },
      },
    },
    async ({ caller, params }, reply) =>
      reply.code(202).send(present(await testWebhook({ db, clock }, caller, params.webhookId))),
  )
}

function addDelete(api: Api, { db, clock }: HttpDeps): void {
  api.delete(
    '/v1/webhooks/:webhookId',
    {
      config: {
        scope,
        refusals: [...refusals, 'delivery_in_progress'],
        otherResponses: {
          204: { description: 'Deleted, with its waiting deliveries.', contentType: null },
        },
      },
      schema: {
        operationId: 'deleteWebhook',
        tags,
        summary: 'Delete a webhook endpoint',
        description: 'Returns 409 while a call is in progress. A disabled endpoint can always be deleted.',
        params: WebhookParams,
        querystring: Nothing,
      },
    },
    async ({ caller, params }, reply) => {
      await deleteWebhook({ db, clock }, caller, params.webhookId)
      return reply.code(204).send()
    },
  )
}

function addDeliveries(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/webhooks/:webhookId/deliveries',
    {
      preValidation: readLimit,
      config: { scope, refusals: ['invalid_cursor', ...refusals] },
      schema: {
        operationId: 'listWebhookDeliveries',
        tags,
        summary: 'List the deliveries of a webhook endpoint',
        description: 'Deliveries of the last 30 days, newest first.',
        params: WebhookParams,
        querystring: PageQuery,
        response: { 200: WebhookDeliveryList.ref },
      },
    },
    async ({ caller, params, query, db }) => {
      const name = { list: `deliveries ${params.webhookId}`, organizationId: caller.organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, async (before, limit) => {
        const { id } = await readWebhook(db, caller, params.webhookId)
        return await listWebhookDeliveries(db, id, before, limit)
      })
      return { deliveries: page.map(presentDelivery), nextCursor }
    },
  )
}

function addReplay(api: Api, { db, clock }: HttpDeps): void {
  api.post(
    '/v1/webhooks/:webhookId/deliveries/:deliveryId/replay',
    {
      config: { scope, refusals: [...refusals] },
      schema: {
        operationId: 'replayWebhookDelivery',
        tags,
        summary: 'Replay a delivery',
        description: 'Delivers the event again with the same webhook-id and a new series of retries.',
        params: WebhookDeliveryParams,
        querystring: Nothing,
        response: { 202: WebhookDelivery.ref },
      },
    },
    async ({ caller, params }, reply) => {
      const delivery = await replayCall({ db, clock }, caller, params.webhookId, params.deliveryId)
      return reply.code(202).send(presentDelivery(delivery))
    },
  )
}

function present({ organizationId: _, createdAt, updatedAt, ...row }: WebhookRow) {
  return { ...row, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() }
}

function presentDelivery({ item, lastAttemptAt, nextAttemptAt, createdAt, ...row }: WebhookDeliveryRow) {
  return {
    ...row,
    eventId: item.id,
    type: item.type,
    lastAttemptAt: lastAttemptAt?.toISOString() ?? null,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
  }
}
