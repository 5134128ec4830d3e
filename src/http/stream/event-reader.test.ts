// Event ids as clients send them back.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatEventId, parseEventId } from './event-reader.ts'

const id = '0199a1b2-5e6f-7081-92a3-3e4f5a6b7c8d'

test('a published event id is read back unchanged', () => {
  for (const xact of ['0', '746', '9999999999999999999']) {
    const cursor = { xact, seq: 12, item: 3 }
    assert.deepEqual(parseEventId(formatEventId(id, cursor)), { id, cursor })
  }
})

const unknown = [
  ...['', 'x', id, `${id}.`, `${id}.1-2`, `${id}.1-2-3-4`, `${id}.-1-2-3`, `${id}.1-2-3\n`, ` ${id}.1-2-3`],
  ...[`${id}.080-0-0`, `${id}.00-0-0`, `${id}.0x1-0-0`, `${id}.18446744073709551616-0-0`],
  ...[`${id}.1-1234567890123456-0`, `${id}.1-0-123456`, `${id}.1e3-0-0`],
]

for (const text of unknown)
  test(`check 71: ${JSON.stringify(text)} is refused as an event id`, () =>
    assert.equal(parseEventId(text), null))
