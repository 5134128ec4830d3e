// Destination queues at the desk: the waiting mail, why it waits, and the operator's changes.
import { ServiceError } from '../../../base/errors.ts'
import { cancelQueue, flushQueue, pauseQueue } from '../../../flow/delivering/end-deliveries.ts'
import { readConversation } from '../../../store/sending/conversation.ts'
import { listQueues, listWaiting, type QueueRow, type WaitingRow } from '../../../store/sending/routes.ts'
import { requireConfirmed } from '../admission.ts'
import { type Desk, type DeskDeps, operatorOf } from '../deps.ts'
import {
  Cancelled,
  Moved,
  QueueParams as params,
  Queue,
  QueueList,
  QueueQuery,
  QueueState,
} from '../schemas/queue.ts'
import { Confirmation } from '../schemas/scalars.ts'

const pageLength = 100
const path = '/desk/v1/queues/:queue'

export function queueRoutes(desk: Desk, deps: DeskDeps): void {
  addList(desk, deps)
  addShow(desk, deps)
  addPause(desk, deps)
  addFlush(desk, deps)
  addCancel(desk, deps)
}

function addList(desk: Desk, { db }: DeskDeps): void {
  desk.get('/desk/v1/queues', { schema: { response: { 200: QueueList } } }, async () => ({
    queues: (await listQueues(db, null)).map(present),
  }))
}

function addShow(desk: Desk, { db }: DeskDeps): void {
  desk.get(
    path,
    { schema: { params, querystring: QueueQuery, response: { 200: Queue } } },
    async ({ params, query }) => {
      const offset = Number(query.offset ?? 0)
      const key = params.queue.toLowerCase()
      const [row] = await listQueues(db, key)
      if (!row) throw new ServiceError('not_found', 'There is no such queue.')
      const waiting = await listWaiting(db, key, offset, pageLength + 1)
      return {
        ...present(row),
        deliveries: waiting.slice(0, pageLength).map(presentWaiting),
        nextOffset: waiting.length > pageLength ? offset + pageLength : null,
      }
    },
  )
}

function addPause(desk: Desk, deps: DeskDeps): void {
  for (const [verb, state] of [
    ['pause', 'paused'],
    ['resume', 'running'],
  ] as const)
    desk.post(`${path}/${verb}`, { schema: { params, response: { 200: QueueState } } }, async (request) => {
      const key = request.params.queue.toLowerCase()
      await pauseQueue(deps, key, state, operatorOf(request))
      return { key, state }
    })
}

function addFlush(desk: Desk, deps: DeskDeps): void {
  desk.post(`${path}/flush`, { schema: { params, response: { 200: Moved } } }, async (request) => ({
    moved: await flushQueue(deps, request.params.queue.toLowerCase(), operatorOf(request)),
  }))
}

function addCancel(desk: Desk, deps: DeskDeps): void {
  desk.post(
    `${path}/cancel`,
    { schema: { params, body: Confirmation, response: { 200: Cancelled } } },
    async (request) => {
      const key = request.params.queue.toLowerCase()
      requireConfirmed(request.body.confirm, key)
      return { cancelled: await cancelQueue(deps, key, operatorOf(request)) }
    },
  )
}

function present(row: QueueRow) {
  return { ...row, state: row.paused ? 'paused' : row.failures > 0 ? 'blocked' : 'running' } as const
}

function presentWaiting(row: WaitingRow) {
  return { ...row, conversation: readConversation(row.conversation) }
}
