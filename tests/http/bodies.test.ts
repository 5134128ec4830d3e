// Tests size limits to the byte, and hostile request bodies.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Inbox } from '../support/api.ts'
import { ask, largestContentBytes, setStage } from './stage.ts'

const stage = await setStage({ after })
const { secret, api } = await stage.createCaller()
const inbox = await api.createInbox()
const path = `/v1/inboxes/${inbox.id}/messages`

let keys = 0
const nextKey = () => `bodies-${++keys}`
const good = { to: [{ email: 'a@far.test' }], subject: 'S', text: 'T' }
const attachment = { filename: 'a.txt', contentType: 'text/plain', content: 'QQ==' }
const people = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ email: `p${index}@far.test` }))
const send = (body: unknown, idempotencyKey = nextKey()) =>
  api.call(path, { method: 'POST', idempotencyKey, body })

const bodies: [name: string, change: object, status: number, pointer?: string][] = [
  ['a subject of 998', { subject: 's'.repeat(998) }, 202],
  ['a subject of 998 code points beyond the BMP', { subject: '\u{1f600}'.repeat(998) }, 202],
  ['a subject of 999', { subject: 's'.repeat(999) }, 400, '/subject'],
  ['an empty subject', { subject: '' }, 400, '/subject'],
  ['a subject of spaces', { subject: ' \u00a0\u200b\u3000' }, 400, '/subject'],
  ['a subject of two lines', { subject: 'a\r\nBcc: b@far.test' }, 400, '/subject'],
  ['a subject with a bare line feed', { subject: 'a\nb' }, 400, '/subject'],
  ['a subject that is a number', { subject: 1 }, 400, '/subject'],
  ['no subject', { subject: undefined }, 400, '/subject'],
  ['no body', { text: undefined }, 400, '/text'],
  ['html alone', { text: undefined, html: '<p>T</p>' }, 202],
  ['an unknown member', { colour: 'red' }, 400, '/colour'],
  ['an unknown member of a recipient', { to: [{ email: 'a@far.test', title: 'Dr' }] }, 400, '/to/0/title'],
  ['1000 recipients', { to: people(1000) }, 202],
  ['1001 recipients', { to: people(1001) }, 400, '/to'],
  ['no recipient', { to: [] }, 400, '/to'],
  ['a recipient that is a text', { to: ['a@far.test'] }, 400, '/to/0'],
  ['a recipient without an address', { to: [{ name: 'A' }] }, 400, '/to/0/email'],
  ['an address with a route', { to: [{ email: '@a.test:b@far.test' }] }, 400, '/to/0/email'],
  [
    'an address with a line break',
    { to: [{ email: 'a@far.test\r\nRCPT TO:<b@far.test>' }] },
    400,
    '/to/0/email',
  ],
  ['an internationalized address', { to: [{ email: 'jürgen@bücher.test' }] }, 202],
  ['a name of 998', { to: [{ email: 'a@far.test', name: 'n'.repeat(998) }] }, 202],
  ['an empty name', { to: [{ email: 'a@far.test', name: '' }] }, 202],
  ['a name with a line break', { to: [{ email: 'a@far.test', name: 'A\r\nX: y' }] }, 400, '/to/0/name'],
  ['a reply-to with a line break', { replyTo: { email: 'a@far.test', name: 'A\nB' } }, 400, '/replyTo/name'],
  ['copies', { cc: people(2), bcc: [{ email: 'hidden@far.test' }] }, 202],
  ['an unknown purpose', { purpose: 'fun' }, 400, '/purpose'],
  ['marketing', { purpose: 'marketing' }, 403],
  ['metadata', { metadata: { a: 'x'.repeat(500), b: 1.5, c: true, d: null, constructor: 'C' } }, 202],
  ['metadata with a long value', { metadata: { a: 'x'.repeat(501) } }, 400, '/metadata/a'],
  ['metadata with an object', { metadata: { a: {} } }, 400, '/metadata/a'],
  ['metadata with a strange name', { metadata: { 'a b': 1 } }, 400, '/metadata/a b'],
  ['metadata with a name of 41', { metadata: { [`a${'b'.repeat(40)}`]: 1 } }, 400, '/metadata/a'],
  ['50 metadata', { metadata: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, i])) }, 202],
  [
    '51 metadata',
    { metadata: Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, i])) },
    400,
    '/metadata',
  ],
  ['text that reads like members', { text: '"a":1,"a":2 \\" "a":', html: '{"a":"\\"}' }, 202],
  ['one name in several objects', { cc: people(3), bcc: people(2) }, 202],
  ['an attachment', { attachments: [attachment] }, 202],
  ['an inline attachment', { attachments: [{ ...attachment, contentId: 'logo@x' }] }, 202],
  [
    'a media type with a parameter',
    { attachments: [{ ...attachment, contentType: 'text/calendar; method=REQUEST' }] },
    202,
  ],
  [
    'no media type',
    { attachments: [{ ...attachment, contentType: 'text' }] },
    400,
    '/attachments/0/contentType',
  ],
  [
    'a path for a file name',
    { attachments: [{ ...attachment, filename: '../a' }] },
    400,
    '/attachments/0/filename',
  ],
  [
    'a file name of 256',
    { attachments: [{ ...attachment, filename: 'f'.repeat(256) }] },
    400,
    '/attachments/0/filename',
  ],
  [
    'base64 without padding',
    { attachments: [{ ...attachment, content: 'QQ' }] },
    400,
    '/attachments/0/content',
  ],
  [
    'base64 with a line break',
    { attachments: [{ ...attachment, content: 'QUFB\nQUFB' }] },
    400,
    '/attachments/0/content',
  ],
  ['base64url', { attachments: [{ ...attachment, content: '-_8=' }] }, 400, '/attachments/0/content'],
  [
    'base64 with stray bits',
    { attachments: [{ ...attachment, content: 'QR==' }] },
    400,
    '/attachments/0/content',
  ],
  ['101 attachments', { attachments: Array.from({ length: 101 }, () => attachment) }, 400, '/attachments'],
  ['content of the limit', { text: 'é'.repeat(largestContentBytes / 2) }, 202],
  ['content of a byte more', { text: `${'é'.repeat(largestContentBytes / 2)}a` }, 413],
  ['a NUL in the text', { text: 'a\0b' }, 400, '/text'],
  ['a lone surrogate in the text', { text: 'a\ud800b' }, 400, '/text'],
  ['the largest whole number', { metadata: { a: Number.MAX_SAFE_INTEGER } }, 202],
  ['a whole number that a double rounds', { metadata: { a: 2 ** 53 } }, 400, '/metadata/a'],
  ['an infinite number', { metadata: { a: 'REPLACED' } }, 400, '/metadata/a'],
]

for (const [name, change, status, pointer] of bodies)
  test(`check 39, check 73: ${name} is ${status}`, async () => {
    const text = JSON.stringify({ ...good, ...change }).replace('"REPLACED"', '1e999')
    const headers = { 'content-type': 'application/json', 'idempotency-key': nextKey() }
    const answer = await ask(stage, 'POST', path, { secret, headers, body: text })
    assert.equal(answer.status, status, JSON.stringify(answer.body))
    if (status === 400) assert.equal(answer.body.error, 'invalid_request')
    if (pointer) assert.ok(answer.body.message?.startsWith(pointer), answer.body.message)
  })

test('check 72: a request counts as the same, however its path and its numbers are written', async () => {
  const key = nextKey()
  const headers = { 'content-type': 'application/json', 'idempotency-key': key }
  const post = (target: string, metadata: string) => {
    const body = JSON.stringify({ ...good, metadata: {} }).replace('{}', metadata)
    return ask(stage, 'POST', target, { secret, headers, body })
  }
  const first = await post(path, '{"a":1,"b":100}')
  assert.deepEqual([first.status, first.body['replayed']], [202, false])
  const spelled = await post(path.replace('inb_', '%69nb%5f'), '{"b":1e2,"a":1.0}')
  assert.deepEqual([spelled.status, spelled.body['replayed']], [202, true])
  for (const number of ['12345678901234567890', '12345678901234567891', '1e400']) {
    const refused = await post(path, `{"a":${number}}`)
    assert.deepEqual([refused.status, refused.body.error], [400, 'invalid_request'])
    assert.match(refused.body.message ?? '', /^\/metadata\/a /)
  }
})

const inboxBodies: [name: string, body: object, status: number, error?: string][] = [
  ['nothing asked for', {}, 201],
  ['a local part', { localPart: 'a' }, 201],
  ['a local part of 64', { localPart: `b${'c'.repeat(62)}d` }, 201],
  ['a local part of 65', { localPart: `b${'c'.repeat(63)}d` }, 400, 'invalid_request'],
  ['two dots in a row', { localPart: 'a..b' }, 400, 'invalid_request'],
  ['a dot at the end', { localPart: 'a.' }, 400, 'invalid_request'],
  ['a Greek letter', { localPart: 'ρostmaster' }, 400, 'invalid_request'],
  ['a Kelvin sign, which folds to k', { localPart: '\u212aey' }, 400, 'invalid_request'],
  ['a reserved local part', { localPart: 'postmaster' }, 400, 'reserved_local_part'],
  ['a reserved local part in capitals', { localPart: 'PostMaster' }, 400, 'reserved_local_part'],
  ['a reserved local part with dots', { localPart: 'post.master' }, 400, 'reserved_local_part'],
  ['a display name of 200', { displayName: 'd'.repeat(200) }, 201],
  ['a display name of 201', { displayName: 'd'.repeat(201) }, 400, 'invalid_request'],
  ['an empty display name', { displayName: '' }, 400, 'invalid_request'],
  ['a display name of white space', { displayName: ' \u00a0' }, 400, 'invalid_request'],
  ['a display name with an escape sequence', { displayName: 'A\u001b[2J' }, 400, 'invalid_request'],
  ['a display name of two lines', { displayName: 'a\r\nb' }, 400, 'invalid_request'],
  ['a domain that is no UUID', { domainId: 'x' }, 400, 'invalid_request'],
  ['an unknown domain', { domainId: '0199a1b2-3c4d-7e5f-8a6b-1c2d3e4f5a6b' }, 404, 'not_found'],
  ['an unknown member', { name: 'x' }, 400, 'invalid_request'],
]

for (const [name, body, status, error] of inboxBodies)
  test(`check 73, check 75: an inbox with ${name} is ${status}`, async () => {
    const answer = await api.call('/v1/inboxes', { method: 'POST', body })
    assert.deepEqual([answer.status, answer.body.error], [status, error])
  })

const repeated: [name: string, change: [from: string, to: string], pointer: string][] = [
  ['a subject', ['"subject":"S"', '"subject":"S","subject":"S"'], '/subject'],
  ['recipients, one of them escaped', ['"text":"T"', '"text":"T","t\\u006f":[]'], '/to'],
  [
    'an address, with a break before the colon',
    ['"a@far.test"', '"a@far.test","email"\n:"b@far.test"'],
    '/to/0/email',
  ],
  [
    'metadata, behind a text full of quotes',
    ['"text":"T"', '"text":"\\\\\\":","metadata":{"a":1,"b":2,"a":1}'],
    '/metadata/a',
  ],
]

for (const [name, [from, to], pointer] of repeated)
  test(`a body that repeats ${name} is 400 invalid_json, and the answer names it`, async () => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': nextKey() }
    const body = JSON.stringify(good).replace(from, to)
    const answer = await ask(stage, 'POST', path, { secret, headers, body })
    assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_json'])
    assert.equal(answer.body.message, `${pointer} occurs twice in the body.`)
  })

test('a local part is written in lower case', async () => {
  const made = await api.want<Inbox>('/v1/inboxes', {
    method: 'POST',
    body: { localPart: 'Ada.Lovelace' },
    status: 201,
  })
  assert.equal(made.address, 'ada.lovelace@inbox.test')
})

test('check 72: an idempotency key has 8 to 200 of the allowed characters', async () => {
  const keyCases: [key: string, status: number][] = [
    ['a'.repeat(8), 202],
    ['a'.repeat(200), 202],
    ['A0._:-zZ', 202],
    ['a'.repeat(7), 400],
    ['a'.repeat(201), 400],
    ['with space', 400],
    ['ümlaut-key', 400],
  ]
  for (const [key, status] of keyCases) {
    const answer = await send(good, key)
    assert.equal(answer.status, status, key)
    if (status === 400) assert.equal(answer.body.error, 'invalid_idempotency_key')
  }
  const { status, body } = await api.call(path, { method: 'POST', body: good })
  assert.deepEqual([status, body.error], [400, 'invalid_idempotency_key'])
})

test('check 74: a body other than JSON under application/json is 400', async (t) => {
  const json = 'application/json'
  const cases: [
    name: string,
    contentType: string | null,
    body: string | Buffer | undefined,
    headers?: Record<string, string>,
  ][] = [
    ['text/plain', 'text/plain', '{}'],
    ['no content type', null, Buffer.from('{}')],
    ['a form', 'application/x-www-form-urlencoded', 'a=b'],
    ['a relative of JSON', 'application/jsonp', '{}'],
    ['a broken content type', 'json', '{}'],
    ['nothing at all', null, undefined],
    ['an empty body', json, ''],
    ['a gzip bomb', json, gzipSync(Buffer.alloc(10 << 20, 0x20)), { 'content-encoding': 'gzip' }],
    ['gzip that says nothing', json, gzipSync('{}')],
    ['a byte order mark', json, '\ufeff{}'],
    ['ten thousand brackets', json, '['.repeat(10_000)],
  ]
  for (const [name, contentType, body, headers] of cases)
    await t.test(`a body is refused: ${name}`, async () => {
      const all = { ...(contentType && { 'content-type': contentType }), ...headers }
      const answer = await ask(stage, 'POST', '/v1/inboxes', {
        secret,
        headers: all,
        ...(body !== undefined && { body }),
      })
      assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_json'])
    })
  await t.test('a further charset is accepted', async () => {
    const headers = { 'content-type': 'Application/JSON; charset=UTF-8' }
    assert.equal((await ask(stage, 'POST', '/v1/inboxes', { secret, headers, body: '{}' })).status, 201)
  })
  await t.test('an unexpected body is not read', async () => {
    const headers = { 'content-type': 'application/json' }
    const target = '/v1/inboxes/inb_000000000000000000000000'
    assert.equal((await ask(stage, 'DELETE', target, { secret, headers, body: '{"' })).status, 204)
  })
  await t.test('deep JSON and prototypes are refused', async () => {
    const deep = `{"metadata":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`
    for (const body of [deep, '{"__proto__":{"displayName":"x"}}', '{"constructor":{"prototype":{"x":1}}}']) {
      const headers = { 'content-type': 'application/json' }
      assert.equal((await ask(stage, 'POST', '/v1/inboxes', { secret, headers, body })).status, 400)
    }
    assert.equal('displayName' in {}, false)
  })
})

const bodyLimit = Math.ceil(largestContentBytes * 1.5) + (1 << 20)
const padded = (sizeBytes: number) => {
  const body = JSON.stringify(good)
  return body + ' '.repeat(sizeBytes - body.length)
}

test('check 73: a body at the limit is accepted, and one byte more is 413 payload_too_large', async () => {
  const cases: [sizeBytes: number, status: number, error?: string][] = [
    [bodyLimit, 202],
    [bodyLimit + 1, 413, 'payload_too_large'],
    [2 * bodyLimit, 413, 'payload_too_large'],
  ]
  for (const [sizeBytes, status, error] of cases) {
    const headers = { 'content-type': 'application/json', 'idempotency-key': nextKey() }
    const answer = await ask(stage, 'POST', path, { secret, headers, body: padded(sizeBytes) })
    assert.deepEqual([answer.status, answer.body.error], [status, error])
  }
})

const start = (extra: string[]) =>
  [
    `POST ${path} HTTP/1.1`,
    'host: x',
    `x-api-key: ${secret}`,
    'content-type: application/json',
    ...extra,
    '',
    '',
  ].join('\r\n')

const requests: [name: string, bytes: string, answers: RegExp][] = [
  [
    'a declared gigabyte',
    start(['idempotency-key: raw-000001', 'content-length: 1073741824']),
    /^HTTP\/1\.1 413 /,
  ],
  [
    'length and chunks together',
    `${start(['content-length: 4', 'transfer-encoding: chunked'])}0\r\n\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  ['two lengths', `${start(['content-length: 4', 'content-length: 5'])}{}  x`, /^HTTP\/1\.1 400 /],
  ['a broken chunk', `${start(['transfer-encoding: chunked'])}zz\r\n`, /^HTTP\/1\.1 400 /],
  ['obsolete folding', start(['a: b', ' folded: c', 'content-length: 0']), /^HTTP\/1\.1 400 /],
  ['no host', 'GET /v1/me HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 /],
  ['a header of 20 kilobytes', start([`x: ${'y'.repeat(20_000)}`]), /^HTTP\/1\.1 400 /],
  ['SMTP', 'EHLO far.test\r\n', /^HTTP\/1\.1 400 /],
]

for (const [name, bytes, wanted] of requests)
  test(`check 74: ${name} is refused and the connection closed`, { timeout: 20_000 }, async () => {
    const answer = await talk(`${bytes}`)
    assert.match(answer, wanted)
    assert.equal(answer.match(/^HTTP\/1\.1 /gm)?.length, 1)
  })

/** Returns everything the server sends until it closes the connection. */
function talk(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(stage.port, '127.0.0.1', () => socket.write(bytes))
    let said = ''
    socket.on('data', (chunk) => (said += chunk)).on('error', reject)
    socket.on('close', () => resolve(said))
  })
}
