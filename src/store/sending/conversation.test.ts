// A stored conversation fits into 2 KiB: the longest texts are cut first, and no step is lost.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readConversation, writeConversation } from './conversation.ts'

const reply = (code: number, enhanced: string | null, text: string) => ({ code, enhanced, text })

test('short replies are kept unchanged, with times since the attempt began', () => {
  const stored = writeConversation(
    [
      { command: 'connect', atMs: 900.4, reply: reply(220, null, 'mx.test\nready') },
      { command: 'MAIL', atMs: 1003.6, reply: reply(250, '2.1.0', 'ok "so"') },
    ],
    1000,
  )
  assert.equal(stored, '[["connect",-100,220,null,"mx.test ready"],["MAIL",4,250,"2.1.0","ok \\"so\\""]]')
  assert.deepEqual(readConversation(JSON.parse(stored!)), {
    isReused: false,
    steps: [
      { command: 'connect', atMs: -100, code: 220, enhancedStatus: null, text: 'mx.test ready' },
      { command: 'MAIL', atMs: 4, code: 250, enhancedStatus: '2.1.0', text: 'ok "so"' },
    ],
  })
  assert.equal(readConversation(JSON.parse(stored!).slice(1))!.isReused, true)
  assert.deepEqual([writeConversation([], 0), readConversation(null)], [null, null])
})

test('one long reply does not cut the short ones', () => {
  const said = ['EHLO', 'MAIL', '.'].map((command) => {
    return {
      command,
      atMs: 0,
      reply: reply(250, null, command === 'EHLO' ? 'x'.repeat(5000) : 'short words'),
    }
  })
  const { steps } = readConversation(JSON.parse(writeConversation(said, 0)!))!
  assert.match(steps[0]!.text, /^x{1000,}…$/)
  assert.deepEqual([steps[1]!.text, steps[2]!.text], ['short words', 'short words'])
})

test('any replies fit twelve steps into 2 KiB of whole characters', () => {
  const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 1000, size: 'max' }), {
    minLength: 12,
    maxLength: 12,
  })
  fc.assert(
    fc.property(texts, (words) => {
      const said = words.map((text) => {
        return { command: 'STARTTLS', atMs: 123_456_789.5, reply: reply(550, '5.123.123', text) }
      })
      const stored = writeConversation(said, -1e9)!
      assert.ok(Buffer.byteLength(stored) <= 2048)
      const { steps } = readConversation(JSON.parse(stored))!
      assert.equal(steps.length, 12)
      for (const { text } of steps) assert.ok(text.isWellFormed())
    }),
    { numRuns: 200 },
  )
})
