// The API queries of the webhook pages.

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { api, read, type Schemas } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'

export type Webhook = Schemas['Webhook']
export type Delivery = Schemas['WebhookDelivery']

const pageSize = 50
const watchMs = 1_500
const restMs = 4_000
/** Longer lists are not polled, because every poll refetches all pages. */
const watchedPages = 2

export const webhooksQuery = infiniteQueryOptions({
  queryKey: ['webhooks', 'list'],
  queryFn: ({ pageParam }) =>
    read(
      api.GET('/v1/webhooks', {
        params: { query: { limit: pageSize, cursor: pageParam } },
      }),
    ),
  ...paged,
})

export const webhookQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['webhooks', 'one', webhookId],
    queryFn: () => read(api.GET('/v1/webhooks/{webhookId}', { params: { path: { webhookId } } })),
  })

/** The last call of an endpoint, for the list of endpoints. */
export const lastDeliveryQuery = (webhookId: string) =>
  queryOptions({
    queryKey: ['webhooks', 'last', webhookId],
    queryFn: async (): Promise<Delivery | null> => {
      const params = { path: { webhookId }, query: { limit: 1 } }
      const { deliveries } = await read(api.GET('/v1/webhooks/{webhookId}/deliveries', { params }))
      return deliveries[0] ?? null
    },
  })

/** Polls, faster while a call is waiting. */
export const deliveriesQuery = (webhookId: string) =>
  infiniteQueryOptions({
    queryKey: ['webhooks', 'deliveries', webhookId],
    queryFn: ({ pageParam }) => {
      const query = { limit: pageSize, cursor: pageParam }
      const params = { path: { webhookId }, query }
      return read(api.GET('/v1/webhooks/{webhookId}/deliveries', { params }))
    },
    ...paged,
    refetchInterval: ({ state }) => {
      const pages = state.data?.pages ?? []
      const waits = pages.some(({ deliveries }) => deliveries.some(({ status }) => status === 'pending'))
      return pages.length > watchedPages ? false : waits ? watchMs : restMs
    },
  })
