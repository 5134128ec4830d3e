// Cursors are opaque, bound to their list and organization, and refused when altered.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../base/errors.ts'
import { SecretBox } from '../base/secret-box.ts'
import { byId, Cursors } from './lists.ts'

const cursors = new Cursors(new SecretBox(Buffer.alloc(32, 1)))
const name = { list: 'messages inb_1', organizationId: 'a' }
const cursor = cursors.write(name, 'msg_17')

test('a cursor decodes to its position, and an absent cursor to none', () => {
  assert.equal(cursors.read(name, cursor), 'msg_17')
  assert.equal(cursors.read(name, undefined), null)
})

const forged: [what: string, cursor: string, of: typeof name][] = [
  ['empty', '', name],
  ['of another list', cursor, { ...name, list: 'messages inb_2' }],
  ['of another organization', cursor, { ...name, organizationId: 'b' }],
  ['of another deployment', new Cursors(new SecretBox(Buffer.alloc(32, 2))).write(name, 'msg_17'), name],
  ['padded', `${cursor}=`, name],
  ['with something behind it', `${cursor}\n`, name],
  ['shortened', cursor.slice(0, -1), name],
  ['a bare place', Buffer.from('msg_17').toString('base64url'), name],
  ['huge', 'A'.repeat(10_000), name],
]

for (const [what, value, of] of forged)
  test(`check 76, check 68: a cursor that is ${what} is refused`, () => {
    assert.throws(
      () => cursors.read(of, value),
      (error) => error instanceof ServiceError && error.code === 'invalid_cursor',
    )
  })

test('check 76: a cursor with any character changed is refused', () => {
  for (let at = 0; at < cursor.length; at++) {
    const changed = cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1)
    assert.throws(() => cursors.read(name, changed), ServiceError)
  }
})

test('a page has a cursor if more rows follow, and none if it is the last', async () => {
  const ids = ['c', 'b', 'a']
  const read = async (before: string | null, limit: number) =>
    ids
      .filter((id) => before === null || id < before)
      .map((id) => ({ id }))
      .slice(0, limit)
  const pageOf = (query: { limit?: number; cursor?: string }) => cursors.page(name, query, byId, read)
  const all = await pageOf({ limit: 3 })
  assert.deepEqual(all, { page: ids.map((id) => ({ id })), nextCursor: null })
  const first = await pageOf({ limit: 2 })
  assert.deepEqual(first.page, [{ id: 'c' }, { id: 'b' }])
  assert.deepEqual(await pageOf({ limit: 2, cursor: first.nextCursor! }), {
    page: [{ id: 'a' }],
    nextCursor: null,
  })
  const unread = cursors.page(name, { cursor: 'forged' }, byId, () => assert.fail('it was read'))
  await assert.rejects(unread, { code: 'invalid_cursor' })
})
