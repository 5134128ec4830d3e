// Tests what the API announces about limits: the retry time to the second, and each bound of the specification's table.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import type { Inbox } from '../support/api.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { nextKey } from './sending.ts'
import { ask, type Caller, type CallerOptions, largestContentBytes, setStage } from './stage.ts'

const dns = await DnsServer.start()
const stage = await setStage({ after }, { dnsServer: dns.address })
after(() => dns.close())

const json = { 'content-type': 'application/json' }
const dayMs = 86_400_000
const people = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ email: `p${index}@far.test` }))
const mail = { to: people(1), subject: 'S', text: 'T' }

interface Sender extends Caller {
  send(recipients?: number): Promise<{ status: number; error: string | undefined; seconds: number }>
}

async function makeSender(options: CallerOptions): Promise<Sender> {
  const caller = await stage.createCaller(options)
  const inbox = await caller.api.createInbox()
  const send = async (recipients = 1) => {
    const body = { ...mail, to: people(recipients) }
    const call = { method: 'POST', idempotencyKey: nextKey(), body }
    const answer = await caller.api.call(`/v1/inboxes/${inbox.id}/messages`, call)
    const seconds = Number(answer.headers.get('retry-after'))
    return { status: answer.status, error: answer.body.error, seconds }
  }
  return { ...caller, send }
}

/** Stops the clock at a time of day, so that seconds pass only when the test advances it. */
function stopClock(t: TestContext, timeOfDayMs: number): void {
  const stoppedMs = performance.now()
  t.mock.method(performance, 'now', () => stoppedMs)
  const sinceMidnight = stage.clock.nowMs() % dayMs
  stage.clock.advance(dayMs + timeOfDayMs - sinceMidnight)
}

/** Expects a refusal now and 1 s before the announced time, then acceptance. */
async function assertTrue(again: () => ReturnType<Sender['send']>, wantedSeconds: number): Promise<void> {
  const refused = await again()
  assert.deepEqual([refused.status, refused.seconds], [429, wantedSeconds])
  stage.clock.advance((wantedSeconds - 1) * 1000)
  const before = await again()
  assert.deepEqual([before.status, before.seconds], [429, 1])
  stage.clock.advance(1000)
  assert.equal((await again()).status, 202)
}

const noon = dayMs / 2
const toMidnight = noon / 1000

test('check 50: retry-after is exact to the second, for every limit of volume', async (t) => {
  stopClock(t, noon)
  await t.test('messages a minute: the wait ends a minute after the first', async () => {
    const { send } = await makeSender({ limits: { messagesPerMinute: 2 } })
    await send()
    stage.clock.advance(12_300)
    await send()
    await assertTrue(send, 48)
  })
  const daily: [name: string, limits: CallerOptions['limits'], recipients: number][] = [
    ['messages a day', { messagesPerDay: 1 }, 1],
    ['recipients a day', { recipientsPerDay: 5 }, 3],
    ['messages a day and a minute', { messagesPerDay: 1, messagesPerMinute: 1 }, 1],
  ]
  for (const [name, limits, recipients] of daily)
    await t.test(`${name}: the wait ends at midnight, UTC`, async () => {
      const { send } = await makeSender({ limits })
      stage.clock.advance(dayMs + noon - (stage.clock.nowMs() % dayMs))
      assert.equal((await send(recipients)).status, 202)
      await assertTrue(() => send(recipients), toMidnight)
    })
  await t.test('a wait may end with its minute, after the day', async () => {
    const { send } = await makeSender({ limits: { messagesPerDay: 1, messagesPerMinute: 1 } })
    stage.clock.advance(2 * dayMs - 10_000 - (stage.clock.nowMs() % dayMs))
    assert.equal((await send()).status, 202)
    await assertTrue(send, 60)
  })
})

test('check 78: retry-after is exact to the second for the request rate, and a 429 has no effect', async (t) => {
  stopClock(t, noon + 17_500)
  const caller = await stage.createCaller({ key: { requestsPerMinute: 2 } })
  const open = () => ask(stage, 'POST', '/v1/inboxes', { secret: caller.secret, headers: json, body: '{}' })
  assert.deepEqual([(await open()).status, (await open()).status], [201, 201])
  const refused = await open()
  assert.deepEqual([refused.status, refused.body.error], [429, 'rate_limited'])
  assert.equal(refused.headers.get('retry-after'), '43')
  stage.clock.advance(42_000)
  assert.equal((await open()).status, 429)
  stage.clock.advance(1_000)
  assert.equal((await open()).status, 201)
  const sql = 'select count(*)::integer as inboxes from inbox where organization_id = $1'
  assert.deepEqual(await stage.db.query(sql, [caller.organizationId]), [{ inboxes: 3 }])
})

test('a key without a rate of its own follows its organization’s rate', async () => {
  const caller = await stage.createCaller({ limits: { requestsPerMinute: 77 } })
  const own = await caller.createKey({ requestsPerMinute: 5 })
  const rates = async () => {
    stage.clock.advance(1_000)
    const profiles = await Promise.all(
      [caller, own].map(({ api }) => api.want<{ apiKey: { requestsPerMinute: number } }>('/v1/me')),
    )
    return profiles.map(({ apiKey }) => apiKey.requestsPerMinute)
  }
  assert.deepEqual(await rates(), [77, 5])
  const sql = `update organization set limits = limits || '{"requestsPerMinute": 88}' where id = $1`
  await stage.db.query(sql, [caller.organizationId])
  assert.deepEqual(await rates(), [88, 5])
})

const x = (count: number) => 'x'.repeat(count)
const wide = (count: number) => '\u{1f980}'.repeat(count)
const label = (count: number) => `${'d'.repeat(count)}.`
/** Returns a name of this many characters, in labels that DNS accepts. */
const domainOf = (count: number) => `${label(63).repeat(3)}${'e'.repeat(count - 192 - 8)}.example`
/** The longest address that mail can be sent to. */
const longest = `${x(64)}@${label(63).repeat(2)}${'e'.repeat(53)}.example`
const metadata = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]))
const campaign = (value: string) => ({ headers: { 'x-campaign': value } })
/** Returns text, HTML and an attachment of `sizeBytes` together, counted in bytes and not in characters. */
const content = (sizeBytes: number, { inBase64 = 0 } = {}) => ({
  text: `é${x(98)}`,
  html: x(sizeBytes - 100 - inBase64),
  ...(inBase64 > 0 && {
    attachments: [
      {
        filename: 'a',
        contentType: 'text/plain',
        content: Buffer.alloc(inBase64).toString('base64'),
      },
    ],
  }),
})

type Row = [limit: string, what: string, path: string, body: object | null, status: number, error?: string]

/** Each row of the limits table, on both sides of its bound. `{inbox}` and `{thread}` are the caller's own. */
const rows: Row[] = [
  ['Bulk validation size', '0', '/v1/validate/bulk', { emails: [] }, 400],
  ['Bulk validation size', '1', '/v1/validate/bulk', { emails: ['x'] }, 200],
  ['Bulk validation size', '100', '/v1/validate/bulk', { emails: Array(100).fill('x') }, 200],
  ['Bulk validation size', '101', '/v1/validate/bulk', { emails: Array(101).fill('x') }, 400],
  ['Email length', '320', '/v1/validate', { email: `${x(312)}@far.xyz` }, 200],
  ['Email length', '321', '/v1/validate', { email: `${x(313)}@far.xyz` }, 400],
  ['Email length', '0 of a bulk', '/v1/validate/bulk', { emails: [''] }, 400],
  ['Email length', '320 of a bulk', '/v1/validate/bulk', { emails: [x(320)] }, 200],
  ['Email length', '320 wide ones of a bulk', '/v1/validate/bulk', { emails: [wide(320)] }, 200],
  ['Email length', '321 of a bulk', '/v1/validate/bulk', { emails: [x(321)] }, 400],
  ['Email length', '254, suppressed', '/v1/suppressions', { email: longest }, 201],
  ['Email length', '255, suppressed', '/v1/suppressions', { email: longest.replace('e.', 'ee.') }, 400],
  ['Email length', '321, suppressed', '/v1/suppressions', { email: `${x(313)}@far.xyz` }, 400],
  ...(['message', 'send'] as const).flatMap((operation): Row[] => [
    ['Recipients per message', '0', operation, { to: [] }, 400],
    ['Recipients per message', '50', operation, { to: people(50) }, 202],
    ['Recipients per message', '51', operation, { to: people(51) }, 413, 'too_many_recipients'],
    ['Recipients per message', '1000', operation, { to: people(1000) }, 413, 'too_many_recipients'],
    ['Recipients per message', '1001', operation, { to: people(1001) }, 400],
    [
      'Recipients per message',
      '51 of which two are one',
      operation,
      { to: [...people(50), { email: 'P1@FAR.test' }] },
      202,
    ],
    ['Subject length', '0', operation, { subject: '' }, 400],
    ['Subject length', '1', operation, { subject: 'x' }, 202],
    ['Subject length', '998', operation, { subject: x(998) }, 202],
    ['Subject length', '998 wide ones', operation, { subject: wide(998) }, 202],
    ['Subject length', '999', operation, { subject: x(999) }, 400],
    ['Subject length', 'white space: U+0020', operation, { subject: '   ' }, 400],
    ['Subject length', 'white space: U+00A0', operation, { subject: '\u00a0' }, 400],
    ['Subject length', 'white space: U+200B', operation, { subject: '\u200b\u200b' }, 400],
    ['Subject length', 'white space: U+2028', operation, { subject: '\u2028' }, 400],
    ['Subject length', 'white space: U+FEFF', operation, { subject: '\ufeff' }, 400],
    ['Subject length', 'white space around one letter', operation, { subject: ' \u00a0x\u200b ' }, 202],
    ['Message content size', 'the limit', operation, content(largestContentBytes), 202],
    [
      'Message content size',
      'a byte more',
      operation,
      content(largestContentBytes + 1),
      413,
      'message_too_large',
    ],
    ['Metadata', '50', operation, { metadata: metadata(50) }, 202],
    ['Metadata', '51', operation, { metadata: metadata(51) }, 400],
    ['Metadata', 'a name of 40', operation, { metadata: { [x(40)]: 1 } }, 202],
    ['Metadata', 'a name of 41', operation, { metadata: { [x(41)]: 1 } }, 400],
    ['Metadata', 'a name of nothing', operation, { metadata: { '': 1 } }, 400],
    ['Metadata', 'a value of 500', operation, { metadata: { a: wide(500) } }, 202],
    ['Metadata', 'a value of 501', operation, { metadata: { a: x(501) } }, 400],
    ['Metadata', 'a list', operation, { metadata: { a: [] } }, 400],
  ]),
  [
    'Recipients per message',
    '50 of to, cc and bcc',
    'message',
    { to: people(48), cc: [{ email: 'c@far.test' }], bcc: [{ email: 'd@far.test' }] },
    202,
  ],
  [
    'Recipients per message',
    '51 of to, cc and bcc',
    'message',
    { to: people(49), cc: [{ email: 'c@far.test' }], bcc: [{ email: 'd@far.test' }] },
    413,
    'too_many_recipients',
  ],
  ['Recipients per message', '1001 of cc', 'message', { cc: people(1001) }, 400],
  ['Recipients per message', '1001 of bcc', 'message', { bcc: people(1001) }, 400],
  [
    'Message content size',
    'the limit, in part attached',
    'message',
    content(largestContentBytes, { inBase64: 1000 }),
    202,
  ],
  [
    'Message content size',
    'a byte more, in part attached',
    'message',
    content(largestContentBytes + 1, { inBase64: 1000 }),
    413,
    'message_too_large',
  ],
  [
    'Message content size',
    'the limit, of a reply',
    'reply',
    content(largestContentBytes, { inBase64: 7 }),
    202,
  ],
  [
    'Message content size',
    'a byte more, of a reply',
    'reply',
    content(largestContentBytes + 1, { inBase64: 7 }),
    413,
    'message_too_large',
  ],
  [
    'Custom headers',
    '3',
    'send',
    { headers: { 'x-campaign': 'a', 'x-campaign-id': 'b', 'x-entity-ref-id': 'c' } },
    202,
  ],
  [
    'Custom headers',
    'a fourth',
    'send',
    { headers: { 'x-campaign': 'a', 'x-campaign-id': 'b', 'x-entity-ref-id': 'c', 'x-d': 'd' } },
    400,
  ],
  ['Custom headers', 'another name', 'send', { headers: { 'x-mailer': 'a' } }, 400],
  ['Custom headers', 'a name in capitals', 'send', { headers: { 'X-Campaign': 'a' } }, 400],
  ['Custom headers', 'a value of 998', 'send', campaign(x(998)), 202],
  ['Custom headers', 'a value of 998 wide ones', 'send', campaign(wide(998)), 202],
  ['Custom headers', 'a value of 999', 'send', campaign(x(999)), 400],
  ['Custom headers', 'a value with CR', 'send', campaign('a\rb'), 400],
  ['Custom headers', 'a value with LF', 'send', campaign('a\nb'), 400],
  ['Custom headers', 'a value that is a number', 'send', { headers: { 'x-campaign': 1 } }, 400],
  ['Custom headers', 'any, from an inbox', 'message', campaign('a'), 400],
  ...(
    ['/v1/inboxes/{inbox}/export', '/v1/threads/{thread}', '/v1/submissions', '/v1/inboxes'] as const
  ).flatMap((path): Row[] =>
    (
      [
        ['0', 400],
        ['1', 200],
        ['100', 200],
        ['101', 400],
        ['-1', 400],
        ['1.0', 400],
        ['1e1', 400],
        ['0x10', 400],
        ['01', 400],
        ['', 400],
        ['%201', 400],
        ['1&limit=2', 400],
        ['99999999999999999999', 400],
      ] as const
    ).map(([limit, status]): Row => ['Page size', limit, `${path}?limit=${limit}`, null, status]),
  ),
  ...(
    [
      ['0', 400],
      ['1', 200],
      ['720', 200],
      ['721', 400],
      ['1.5', 400],
      ['', 400],
      ['24h', 400],
    ] as const
  ).map(
    ([hours, status]): Row => ['Metrics window', hours, `/v1/metrics/delivery?hours=${hours}`, null, status],
  ),
  ['Domain length', '0', '/v1/domains', { domain: '' }, 400],
  ['Domain length', '253', '/v1/domains', { domain: domainOf(253) }, 201],
  ['Domain length', '253 and a dot', '/v1/domains', { domain: `${domainOf(253)}.` }, 201],
  ['Domain length', '254', '/v1/domains', { domain: domainOf(254) }, 400],
  ['Domain length', 'a label of 63', '/v1/domains', { domain: `${label(63)}example` }, 201],
  ['Domain length', 'a label of 64', '/v1/domains', { domain: `${label(64)}example` }, 400],
  [
    'Domain length',
    'U-labels longer in ASCII',
    '/v1/domains',
    { domain: `${`${'ü'.repeat(50)}.`.repeat(4)}${'e'.repeat(20)}.example` },
    400,
  ],
  ['Local part', '0', '/v1/inboxes', { localPart: '' }, 400],
  ['Local part', '1', '/v1/inboxes', { localPart: 'q' }, 201],
  ['Local part', '64', '/v1/inboxes', { localPart: `q${x(62)}q` }, 201],
  ['Local part', '65', '/v1/inboxes', { localPart: `q${x(63)}q` }, 400],
  ['Display name', '0', '/v1/inboxes', { displayName: '' }, 400],
  ['Display name', '1', '/v1/inboxes', { displayName: 'q' }, 201],
  ['Display name', '200', '/v1/inboxes', { displayName: x(200) }, 201],
  ['Display name', '200 wide ones', '/v1/inboxes', { displayName: wide(200) }, 201],
  ['Display name', '201', '/v1/inboxes', { displayName: x(201) }, 400],
  ['Display name', '201 wide ones', '/v1/inboxes', { displayName: wide(201) }, 400],
]

test('check 73: every row of the table of limits holds at both sides of its bound', async (t) => {
  const caller = await stage.createCaller({ limits: { recipientsPerMessage: 50 } })
  await proveDomain(caller.api, dns, 'bounds.example', ['outbound'])
  const inbox = await caller.api.createInbox()
  const first = { method: 'POST', idempotencyKey: nextKey(), body: mail, status: 202 }
  const path = `/v1/inboxes/${inbox.id}/messages`
  const { message } = await caller.api.want<{ message: { id: string; threadId: string } }>(path, first)
  const targets: Record<string, [path: string, body: object]> = {
    message: [path, mail],
    send: ['/v1/send', { ...mail, from: { email: 'hello@bounds.example' } }],
    reply: [`/v1/threads/${message.threadId}/replies`, { targetMessageId: message.id, text: 'T' }],
  }
  for (const [limit, what, named, change, status, error = 'invalid_request'] of rows)
    await t.test(`${limit}: ${named} with ${what.slice(0, 60)} is ${status}`, async () => {
      const [target, base] = targets[named] ?? [named, {}]
      const answer = await caller.api.call(
        target.replace('{inbox}', inbox.id).replace('{thread}', message.threadId),
        change === null
          ? {}
          : {
              method: 'POST',
              body: { ...base, ...change },
              ...(named in targets && { idempotencyKey: nextKey() }),
            },
      )
      assert.equal(answer.status, status, JSON.stringify(answer.body).slice(0, 300))
      if (status >= 400) assert.equal(answer.body.error, error)
    })
})

test('check 73: every operation accepts idempotency keys of 8 and 200 characters, and refuses 7 and 201', async (t) => {
  const caller = await stage.createCaller()
  await proveDomain(caller.api, dns, 'keys.example', ['outbound'])
  const inbox = await caller.api.createInbox()
  const path = `/v1/inboxes/${inbox.id}/messages`
  const call = { method: 'POST', idempotencyKey: nextKey(), body: mail, status: 202 }
  const { message } = await caller.api.want<{ message: { id: string; threadId: string } }>(path, call)
  const operations: [path: string, body: object, success: number][] = [
    [path, mail, 202],
    ['/v1/send', { ...mail, from: { email: 'hello@keys.example' } }, 202],
    [`/v1/threads/${message.threadId}/replies`, { targetMessageId: message.id, text: 'T' }, 202],
    ['/v1/inboxes', {}, 201],
  ]
  const keys: [key: string, isGood: boolean][] = [
    [x(7), false],
    [x(8), true],
    [x(200), true],
    [x(201), false],
    ['A0._:-zZ', true],
    ['with space', false],
    ['a/slash-x', false],
    ['a+plus-x1', false],
    ['ümlaut-key', false],
    ['comma,and,more', false],
  ]
  for (const [target, body, success] of operations)
    for (const [key, isGood] of keys)
      await t.test(
        `${target.replace(/[0-9a-f]{24}/, '…')} judges ${key.slice(0, 12)} (${key.length})`,
        async () => {
          const headers = { ...json, 'idempotency-key': key }
          const { secret } = caller
          const answer = await ask(stage, 'POST', target, { secret, headers, body: JSON.stringify(body) })
          assert.equal(answer.status, isGood ? success : 400)
          if (!isGood) assert.equal(answer.body.error, 'invalid_idempotency_key')
        },
      )
  for (const [target, body, success] of operations)
    await t.test(`${target.replace(/[0-9a-f]{24}/, '…')} judges a request without a key`, async () => {
      const answer = await caller.api.call<Inbox & { error?: string }>(target, { method: 'POST', body })
      assert.equal(answer.status, target === '/v1/inboxes' ? success : 400)
      if (answer.status === 400) assert.equal(answer.body.error, 'invalid_idempotency_key')
    })
})

test('an organization past a lowered limit sees its use and its limit', async () => {
  const { api, organizationId } = await stage.createCaller({ limits: { inboxes: 2 } })
  for (const _ of [1, 2]) await api.createInbox()
  await stage.db.query(`update organization set limits = limits || '{"inboxes":1}' where id = $1`, [
    organizationId,
  ])
  const { status, body } = await api.call('/v1/inboxes', { method: 'POST', body: {} })
  assert.deepEqual([status, body.error], [403, 'limit_reached'])
  assert.equal(body.message, 'The organization has 2 inboxes. Its limit is 1.')
})
