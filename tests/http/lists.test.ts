// Tests lists: paging, filters, and which queries they accept. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Acceptance, Inbox, Message } from '../support/api.ts'
import { reply, send } from './sending.ts'
import { setStage } from './stage.ts'

const stage = await setStage({ after })

interface Page {
  nextCursor: string | null
  [list: string]: unknown
}

test('check 76: lists are read page by page', async (t) => {
  const caller = await stage.createCaller()
  const { api } = caller
  const inbox = await api.createInbox()
  const accepted: Acceptance[] = []
  for (let count = 0; count < 7; count++) accepted.push(await send(api, inbox, { subject: `S${count}` }))
  for (let count = 0; count < 6; count++) await api.createInbox()
  const first = accepted[0]!.message
  for (let count = 0; count < 4; count++) await reply(api, first.threadId, first.id)

  const newestFirst = accepted.map(({ message }) => message.id).reverse()
  const lists: [path: string, name: string, count: number][] = [
    ['/v1/inboxes', 'inboxes', 7],
    [`/v1/inboxes/${inbox.id}/messages`, 'messages', 11],
    [`/v1/inboxes/${inbox.id}/threads`, 'threads', 7],
    [`/v1/inboxes/${inbox.id}/export`, 'messages', 11],
    [`/v1/threads/${first.threadId}`, 'messages', 5],
    ['/v1/submissions', 'submissions', 11],
  ]
  const cursors = new Map<string, string>()
  for (const [path, name, count] of lists)
    await t.test(`${path.replace(/[0-9a-f-]{20,}/g, '…')} is read in pages of three`, async () => {
      const ids: string[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Page = await api.want<Page>(`${path}?limit=3${cursor && `&cursor=${cursor}`}`)
        const entries = page[name] as { id: string }[]
        assert.ok(entries.length > 0 && entries.length <= 3)
        ids.push(...entries.map(({ id }) => id))
        cursor = page.nextCursor
        if (cursor) cursors.set(path, cursor)
      }
      assert.equal(new Set(ids).size, ids.length)
      assert.equal(ids.length, count)
      const whole = await api.want<Page>(path)
      assert.deepEqual(
        (whole[name] as { id: string }[]).map(({ id }) => id),
        ids,
      )
      assert.equal(whole.nextCursor, null)
    })
  await t.test('messages are newest first, and their filters apply', async () => {
    const shown = async (query: string) => {
      const { messages } = await api.want<{ messages: Message[] }>(
        `/v1/inboxes/${inbox.id}/messages?${query}`,
      )
      return messages.map(({ id }) => id)
    }
    const all = await shown('limit=100')
    assert.deepEqual(all.slice(4), newestFirst)
    assert.deepEqual(await shown('direction=inbound'), [])
    assert.deepEqual(await shown('direction=outbound&limit=100'), all)
    assert.deepEqual(await shown(`from=${encodeURIComponent(inbox.address.toUpperCase())}&limit=100`), all)
    assert.deepEqual(await shown('from=someone@far.test'), [])
    const at = (accepted[3]!.message as unknown as { createdAt: string }).createdAt
    const [since, until] = [await shown(`since=${at}`), await shown(`until=${at}`)]
    assert.ok(since.includes(accepted[3]!.message.id) && !until.includes(accepted[3]!.message.id))
    assert.equal(since.length + until.length, all.length)
  })
  await t.test('a cursor of another list or organization is 400', async () => {
    const stranger = await stage.createCaller()
    for (const [path] of lists)
      for (const [origin, cursor] of cursors) {
        if (origin === path) continue
        const { status, body } = await api.call(`${path}?cursor=${cursor}`)
        assert.deepEqual([status, body.error], [400, 'invalid_cursor'])
      }
    const { body } = await stranger.api.call(`/v1/inboxes?cursor=${cursors.get('/v1/inboxes')}`)
    assert.equal(body.error, 'invalid_cursor')
  })
  await t.test('inserted and deleted rows do not move the others', async () => {
    const page = await api.want<Page>('/v1/inboxes?limit=3')
    const [newest] = page['inboxes'] as Inbox[]
    await api.want(`/v1/inboxes/${newest!.id}`, { method: 'DELETE', status: 204 })
    await api.createInbox()
    const rest = await api.want<Page>(`/v1/inboxes?limit=100&cursor=${page.nextCursor}`)
    assert.equal((rest['inboxes'] as Inbox[]).length, 4)
  })
})

test('check 73: query parameters are accepted or refused as documented', async (t) => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox()
  const queries: [path: string, query: string, status: number][] = [
    ['/v1/inboxes', 'limit=1', 200],
    ['/v1/inboxes', 'limit=100', 200],
    ...['0', '101', '05', '1e1', '+5', '-1', ' 5', '5.0', '0x5', '', 'x', '99999999999999999999'].map(
      (limit): [string, string, number] => ['/v1/inboxes', `limit=${encodeURIComponent(limit)}`, 400],
    ),
    ['/v1/inboxes', 'limit=5&limit=6', 400],
    ['/v1/inboxes', 'Limit=5', 400],
    ['/v1/inboxes', 'limits=5', 400],
    ['/v1/inboxes', '__proto__=5', 400],
    ['/v1/inboxes', 'q=a%25_b', 200],
    ['/v1/inboxes', 'q=%00', 400],
    ['/v1/inboxes', 'q=', 400],
    ['/v1/inboxes', 'domainId=urn:uuid:0199a1b2-3c4d-7e5f-8a6b-1c2d3e4f5a6b', 400],
    ['/v1/inboxes', 'domainId=0199A1B2-3c4d-7e5f-8a6b-1c2d3e4f5a6b', 200],
    ['/v1/inboxes', 'cursor=', 400],
    ['/v1/submissions', 'status=delivered', 200],
    ['/v1/submissions', 'status=sent', 400],
    ['/v1/submissions', 'recipient=a@far.test', 200],
    ['/v1/submissions', 'recipient=a', 400],
    ['/v1/submissions', 'since=2026-11-21T00:00:00Z&until=2026-11-22T00:00:00%2B02:00', 200],
    ['/v1/submissions', 'since=2026-11-21', 400],
    ['/v1/submissions', 'since=2026-02-30T00:00:00Z', 400],
    ['/v1/submissions', 'since=2016-12-31T23:59:60Z', 400],
    ['/v1/submissions', 'since=2026-11-21%2000:00:00Z', 400],
    ['/v1/submissions', 'since=2026-11-21T00:00:00.123456789Z', 200],
    ['/v1/submissions', 'since=2026-11-21T00:00:00%2B24:00', 400],
    ['/v1/submissions', 'since=0000-01-01T00:00:00%2B23:00&until=9999-12-31T23:59:59-23:00', 200],
    [
      `/v1/inboxes/${inbox.id}/messages`,
      'since=0000-01-01T00:00:00%2B23:00&until=9999-12-31T23:59:59-23:00',
      200,
    ],
    ['/v1/submissions', 'q=x', 400],
  ]
  for (const [path, query, status] of queries)
    await t.test(`${path}?${query} is ${status}`, async () => {
      const answer = await api.call(`${path}?${query}`)
      assert.equal(answer.status, status, JSON.stringify(answer.body))
    })
})
