// Bodies read in the worker thread give the same result as bodies read in the main thread.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestHash } from '../../flow/idempotency.ts'
import { LargeBodies } from './large-bodies.ts'
import { RequestFault } from './request-fault.ts'

/** Bytes that own their memory, with spare room after them, like a body whose buffer grew. */
function bytesOf(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(2 * Buffer.byteLength(text))
  return bytes.subarray(0, bytes.write(text))
}

test('a large body is read like a small one, and its large files are decoded', async (t) => {
  const bodies = new LargeBodies()
  t.after(() => bodies.close())
  const [large, small] = [Buffer.alloc(300_000, 'ab\0'), Buffer.from('small')]
  const contents = [large.toString('base64'), small.toString('base64'), `${'A'.repeat(19_999)}?`]
  const given = {
    text: 'Grüße \u0101',
    attachments: contents.map((content) => ({ content })),
    to: [{}, null],
  }
  const params = { inboxId: 'inb_1' }
  const read = await bodies.read(bytesOf(JSON.stringify(given)), params)
  const kept = ['', contents[1], ''].map((content) => ({ content }))
  assert.deepEqual(read.value, { ...given, attachments: kept })
  assert.deepEqual(read.large.requestHash, requestHash(params, given))
  assert.deepEqual(
    [...read.large.files],
    [
      [0, large],
      [2, null],
    ],
  )
})

test('check 74: invalid JSON gets the same refusal at any size, and never ends the thread', async (t) => {
  const bodies = new LargeBodies()
  t.after(() => bodies.close())
  const refused = (text: string, words: RegExp) =>
    assert.rejects(bodies.read(bytesOf(text), {}), (fault: Error) => {
      return fault instanceof RequestFault && words.test(fault.message)
    })
  await refused('{"a":', /^The body is not valid JSON/)
  await refused('{"a":\n1,}', /^The body is not valid JSON at line 2 column 3\.$/)
  await refused('{"text":"a\\u0000"}', /^\/text must not contain NUL$/)
  await refused(`[${'{},'.repeat(30_000)}1]`, /^The body has more than 20000 values\.$/)
  for (const text of ['null', '1', '[]', '{"attachments":[null,1,{"content":7}]}'])
    assert.deepEqual((await bodies.read(bytesOf(text), {})).value, JSON.parse(text))
})
