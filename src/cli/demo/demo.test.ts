// Shows tour steps for people, with mail fields unfolded and cut.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { TourStep } from './api.ts'
import { formatDuration, formatStep } from './demo.ts'
import { isGenuine } from './receiver.ts'
import { listFields } from './tour.ts'

const step: TourStep = {
  title: 'Ada gets an inbox',
  meaning: 'Mail is taken.',
  request: {
    method: 'POST',
    path: '/v1/inboxes',
    idempotencyKey: 'demo-1',
    body: { localPart: 'demo-ada' },
  },
  status: 201,
  answer: { id: 'inb_1' },
  excerpt: [
    ['id', 'inb_1'],
    ['address', 'demo-ada@inbox.localhost'],
  ],
  durationMs: 12.345,
}

test('a step shows its request, its status with time, and the result', () => {
  assert.equal(
    formatStep(step, 3, (_style, text) => text),
    [
      '',
      '  3  Ada gets an inbox',
      '     Mail is taken.',
      '',
      '     POST /v1/inboxes',
      '     idempotency-key: demo-1',
      '     {"localPart":"demo-ada"}',
      '     → 201 in 12 ms',
      '       id       inb_1',
      '       address  demo-ada@inbox.localhost',
    ].join('\n'),
  )
})

test('each kind of word gets its own colour', () => {
  const painted = formatStep(step, 1, (style, text) => `<${style}>${text}</${style}>`)
  assert.match(painted, /<bold> {2}1 {2}Ada gets an inbox<\/bold>/)
  assert.match(painted, /<green>→ 201<\/green>/)
})

for (const [ms, text] of [
  [0.04, '0.0 ms'],
  [9.94, '9.9 ms'],
  [10.4, '10 ms'],
  [2400, '2400 ms'],
] as const)
  test(`${ms} ms is shown as ${text}`, () => assert.equal(formatDuration(ms), text))

test('a mail’s fields are unfolded, long fields are cut, and the body is left out', () => {
  const source = `Received: from a\r\n by b;\r\n\tSat\r\nX-Long: ${'x'.repeat(200)}\r\nEmpty:\r\n\r\nBody: no field\r\n`
  assert.deepEqual(listFields(source), [
    ['Received', 'from a by b; Sat'],
    ['X-Long', `${'x'.repeat(100)}…`],
    ['Empty', ''],
  ])
})

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const signedAt = new Date('2026-11-21T09:00:00Z')
const raw = '{"type":"message.received"}'
const signature = new Webhook(secret).sign('id-1', signedAt, raw)
const sound = {
  'webhook-id': 'id-1',
  'webhook-timestamp': String(signedAt.getTime() / 1000),
  'webhook-signature': signature,
}

for (const [what, change, isTaken] of [
  ['signed with the secret', {}, true],
  ['signed with two secrets', { 'webhook-signature': `v1,AAAA ${signature}` }, true],
  ['of another id', { 'webhook-id': 'id-2' }, false],
  ['of another time', { 'webhook-timestamp': String(signedAt.getTime() / 1000 + 1) }, false],
  ['signed otherwise', { 'webhook-signature': signature.replace('v1,', 'v2,') }, false],
  ['not signed', { 'webhook-signature': undefined }, false],
  ['without a time', { 'webhook-timestamp': undefined }, false],
] as const)
  test(`a call ${what} is ${isTaken ? 'genuine' : 'refused'}`, () =>
    assert.equal(isGenuine(secret, { ...sound, ...change }, raw, signedAt.getTime()), isTaken))

test('a call with a changed body, or one day old, is refused', () => {
  assert.equal(isGenuine(secret, sound, `${raw} `, signedAt.getTime()), false)
  assert.equal(isGenuine(secret, sound, raw, signedAt.getTime() + 86_400_000), false)
})
