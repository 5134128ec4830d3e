// Every list pages correctly while rows change: untouched rows appear once, in order. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { readOperations } from '../fuzz/api/document.ts'
import { setFurnishedStage } from './furnish.ts'
import { nextKey, reply, send } from './sending.ts'
import type { Caller } from './stage.ts'

const furnisher = await setFurnishedStage({ after })
const { stage } = furnisher
const { db } = stage

/** A list in its own organization, and how its rows are added and removed. */
interface List {
  caller: Caller
  path: string
  /** The array in the answer, and the property that identifies its entries. */
  name: string
  key?: string
  /** Adds a row and returns its key. */
  add(): Promise<string>
  /** Removes a row, if rows of this list can be removed. */
  remove?(key: string): Promise<void>
}

type Make = (caller: Caller) => Promise<List>

const openInbox = async ({ api }: Caller) => (await api.createInbox()).id
const deleteAt =
  ({ api }: Caller, folder: string) =>
  (id: string) =>
    api.want<void>(`${folder}/${id}`, { method: 'DELETE', status: 204 })
const removeRow = (sql: string) => async (id: string) => void (await db.query(sql, [id]))

async function mailOf(
  caller: Caller,
): Promise<{ inboxId: string; sendOne(): Promise<{ id: string; threadId: string }> }> {
  const inbox = await caller.api.createInbox()
  return { inboxId: inbox.id, sendOne: async () => (await send(caller.api, inbox)).message }
}

/** Messages appear in the list of their inbox, in its export, and in their thread. */
const messagesAt =
  (suffix: string): Make =>
  async (caller) => {
    const { inboxId, sendOne } = await mailOf(caller)
    const add = async () => (await sendOne()).id
    return {
      caller,
      path: `/v1/inboxes/${inboxId}/${suffix}`,
      name: 'messages',
      add,
      remove: deleteAt(caller, '/v1/messages'),
    }
  }

const lists: Record<string, Make> = {
  'GET /v1/inboxes': async (caller) => ({
    caller,
    path: '/v1/inboxes',
    name: 'inboxes',
    add: () => openInbox(caller),
    remove: deleteAt(caller, '/v1/inboxes'),
  }),
  'GET /v1/inboxes/{inboxId}/messages': messagesAt('messages'),
  'GET /v1/inboxes/{inboxId}/export': messagesAt('export'),
  'GET /v1/inboxes/{inboxId}/threads': async (caller) => {
    const { inboxId, sendOne } = await mailOf(caller)
    const messages = new Map<string, string>()
    const add = async () => {
      const { id, threadId } = await sendOne()
      messages.set(threadId, id)
      return threadId
    }
    const remove = async (threadId: string) => await deleteAt(caller, '/v1/messages')(messages.get(threadId)!)
    return { caller, path: `/v1/inboxes/${inboxId}/threads`, name: 'threads', add, remove }
  },
  'GET /v1/threads/{threadId}': async (caller) => {
    const { id, threadId } = await (await mailOf(caller)).sendOne()
    const add = async () => (await reply(caller.api, threadId, id)).body.message.id
    return {
      caller,
      path: `/v1/threads/${threadId}`,
      name: 'messages',
      add,
      remove: deleteAt(caller, '/v1/messages'),
    }
  },
  'GET /v1/submissions': async (caller) => {
    const inbox = await caller.api.createInbox()
    const add = async () => (await send(caller.api, inbox)).submission.id
    return { caller, path: '/v1/submissions', name: 'submissions', add }
  },
  'GET /v1/submissions/{submissionId}/events': async (caller) => {
    const inbox = await caller.api.createInbox()
    const to = Array.from({ length: 30 }, (_, index) => ({ email: `r${index}@far.test` }))
    const { submission } = await send(caller.api, inbox, { to })
    const path = `/v1/submissions/${submission.id}/events`
    // All thirty recipients are cancelled at once, so the list grows while it is read.
    const add = async () => {
      const { events } = await caller.api.want<{ events: { id: string }[] }>(`${path}?limit=100`)
      if (events.length < 2)
        await caller.api.want(`/v1/submissions/${submission.id}/cancel`, { method: 'POST' })
      return ''
    }
    return { caller, path, name: 'events', add }
  },
  'GET /v1/suppressions': async (caller) => ({
    caller,
    path: '/v1/suppressions',
    name: 'suppressions',
    key: 'email',
    add: async () => {
      const email = `${nextKey()}@far.test`
      await caller.api.want('/v1/suppressions', { method: 'POST', body: { email }, status: 201 })
      return email
    },
    remove: async (email) => {
      await caller.api.want('/v1/suppressions', { method: 'DELETE', body: { email }, status: 204 })
    },
  }),
  'GET /v1/complaints': async (caller) => ({
    caller,
    path: '/v1/complaints',
    name: 'complaints',
    add: async () => {
      await furnisher.addComplaint(caller)
      const { complaints } = await caller.api.want<{ complaints: { id: string }[] }>('/v1/complaints?limit=1')
      return complaints[0]!.id
    },
    remove: removeRow('delete from complaint where id = $1'),
  }),
  'GET /v1/domains': async (caller) => ({
    caller,
    path: '/v1/domains',
    name: 'domains',
    add: () => furnisher.addDomain(caller),
    remove: deleteAt(caller, '/v1/domains'),
  }),
  'GET /v1/webhooks': async (caller) => ({
    caller,
    path: '/v1/webhooks',
    name: 'webhooks',
    add: async () => {
      const body = { url: 'https://app.example.com/hooks' }
      return (await caller.api.want<{ id: string }>('/v1/webhooks', { method: 'POST', body, status: 201 })).id
    },
    remove: deleteAt(caller, '/v1/webhooks'),
  }),
  'GET /v1/webhooks/{webhookId}/deliveries': async (caller) => {
    const { webhookId } = await furnisher.addWebhook(caller)
    const path = `/v1/webhooks/${webhookId}/deliveries`
    const add = async () => await furnisher.addDelivery(caller, webhookId)
    return {
      caller,
      path,
      name: 'deliveries',
      add,
      remove: removeRow('delete from webhook_delivery where id = $1'),
    }
  },
}

const withCursor = (await readOperations(stage.base)).filter(({ parameters }) =>
  parameters.some(({ name }) => name === 'cursor'),
)

test('check 76: this file tests every list of the document', () => {
  assert.deepEqual(Object.keys(lists).sort(), withCursor.map(({ name }) => name).sort())
})

const untouched = 7

for (const [operation, make] of Object.entries(lists))
  test(`check 76: ${operation} keeps its pages exact while rows change`, async () => {
    const list = await make(await furnisher.createCaller())
    for (let count = 0; count < untouched; count++) await list.add()
    const keysOf = async (query: string) => await pageOf(list, query)
    const wanted = (await keysOf('limit=100')).keys
    const changes = fc.array(fc.constantFrom('add', 'remove', 'nothing'), { minLength: 6, maxLength: 6 })
    const property = fc.asyncProperty(fc.integer({ min: 1, max: 4 }), changes, async (limit, between) => {
      const passing = [await list.add()]
      const seen: string[] = []
      let cursor: string | null = ''
      for (let turn = 0; cursor !== null; turn++) {
        const page = await keysOf(`limit=${limit}${cursor && `&cursor=${cursor}`}`)
        seen.push(...page.keys)
        cursor = page.nextCursor
        const change = between[turn % between.length]
        // Otherwise lists in ascending order would never end.
        if (change === 'add' && turn < 6) passing.push(await list.add())
        const [gone] = passing
        if (change === 'remove' && gone && list.remove) {
          passing.shift()
          await list.remove(gone)
        }
      }
      assert.equal(new Set(seen).size, seen.length, 'one was shown twice')
      assert.deepEqual(
        seen.filter((key) => wanted.includes(key)),
        wanted,
      )
      if (list.remove) for (const key of passing) await list.remove(key)
    })
    await fc.assert(property, { numRuns: operation === 'GET /v1/domains' ? 2 : 5, endOnFailure: true })
  })

async function pageOf({ caller, path, name, key = 'id' }: List, query: string) {
  type Page = { nextCursor: string | null } & Record<string, unknown>
  const page = await caller.api.want<Page>(`${path}?${query}`)
  const entries = page[name] as Record<string, string>[]
  return { keys: entries.map((entry) => entry[key]!), nextCursor: page.nextCursor }
}

for (const [operation, make] of Object.entries(lists))
  test(`check 76: ${operation} refuses a cursor that is changed, cut, or of another list`, async () => {
    const [list, other] = [
      await make(await furnisher.createCaller()),
      await make(await furnisher.createCaller()),
    ]
    for (const one of [list, other]) for (let count = 0; count < 2; count++) await one.add()
    const [{ nextCursor }, foreign] = [await pageOf(list, 'limit=1'), await pageOf(other, 'limit=1')]
    assert.ok(nextCursor && foreign.nextCursor)
    const position = fc.nat({ max: nextCursor.length - 1 })
    const changed = fc.tuple(position, fc.constantFrom(...'AZaz09-_')).map(([at, letter]) => {
      return nextCursor.slice(0, at) + letter + nextCursor.slice(at + 1)
    })
    const forged = fc.oneof(
      changed,
      position.map((at) => nextCursor.slice(0, at)),
      fc.base64String({ maxLength: 80 }),
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom(
        foreign.nextCursor,
        `${nextCursor}A`,
        `${nextCursor}=`,
        ` ${nextCursor}`,
        nextCursor.toUpperCase(),
      ),
    )
    const property = fc.asyncProperty(
      forged.filter((cursor) => cursor !== nextCursor),
      async (cursor) => {
        const { status, body } = await list.caller.api.call(
          `${list.path}?cursor=${encodeURIComponent(cursor)}`,
        )
        assert.equal(status, 400, cursor)
        assert.equal(body.error, 'invalid_cursor', cursor)
      },
    )
    await fc.assert(property, { numRuns: 40 })
    assert.equal((await list.caller.api.call(`${list.path}?limit=1&cursor=${nextCursor}`)).status, 200)
  })
