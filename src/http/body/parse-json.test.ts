// Parses JSON bodies, honest and hostile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inCpuTime } from '../../../tests/support/cpu-time.ts'
import { parseJson } from './parse-json.ts'
import { bodyLimitBytes } from './read-json.ts'
import { RequestFault } from './request-fault.ts'

const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

const refused: [name: string, body: string | Buffer, code: string][] = [
  ['nothing', '', 'invalid_json'],
  ['a fragment', '{"a":', 'invalid_json'],
  ['two values', '{}{}', 'invalid_json'],
  ['a byte order mark', '\ufeff{}', 'invalid_json'],
  ['invalid UTF-8', Buffer.from([0x22, 0xc3, 0x28, 0x22]), 'invalid_json'],
  ['UTF-8 for a lone surrogate', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), 'invalid_json'],
  ['UTF-16', Buffer.from('{"a":1}', 'utf16le'), 'invalid_json'],
  ['a raw NUL', '"a\0b"', 'invalid_json'],
  ['an escaped NUL', '{"text":"a\\u0000b"}', 'invalid_request'],
  ['an escaped NUL in a name', '{"a\\u0000":1}', 'invalid_request'],
  ['a lone high surrogate', '{"text":"\\ud83d"}', 'invalid_request'],
  ['a lone low surrogate', '{"text":["\\uDE00"]}', 'invalid_request'],
  ['surrogates the wrong way round', '"\\ude00\\ud83d"', 'invalid_request'],
  ["a prototype's name", '{"metadata":{"__proto__":{"x":1}}}', 'invalid_request'],
  ["a prototype's name in escapes", '{"\\u005f_proto__":1}', 'invalid_request'],
  ['depth with an escape', `{"a":"\\u0041","b":${deep(100)}}`, 'invalid_json'],
  ['NaN', '{"a":NaN}', 'invalid_json'],
]

for (const [name, body, code] of refused)
  test(`check 74: ${name} is ${code}`, () => {
    assert.throws(
      () => parseJson(Buffer.from(body)),
      (fault) => fault instanceof RequestFault && fault.code === code,
    )
  })

const taken: [name: string, body: string, value: unknown][] = [
  ['a whole surrogate pair in escapes', '"\\ud83d\\ude00"', '\u{1f600}'],
  ["a prototype's name as a text", '{"text":"__proto__"}', { text: '__proto__' }],
  ['null', 'null', null],
]

for (const [name, body, value] of taken)
  test(`check 74: ${name} is taken`, () => {
    assert.deepEqual(parseJson(Buffer.from(body)), value)
  })

const places: [body: string, message: string][] = [
  ['{"to":"ada",}', 'The body is not valid JSON at line 1 column 13.'],
  ['{\n  "secret": 1\n  "b": 2}', 'The body is not valid JSON at line 3 column 3.'],
  ['["secret",]', 'The body is not valid JSON.'],
  ['', 'The body is empty. Send JSON.'],
]

for (const [body, message] of places)
  test(`check 74: ${JSON.stringify(body)}: the refusal names the position, never the body`, () => {
    assert.throws(() => parseJson(Buffer.from(body)), { code: 'invalid_json', message })
  })

test('check 74: ten million brackets neither overflow the stack nor change a prototype', () => {
  assert.throws(() => parseJson(Buffer.from('['.repeat(10_000_000))), RequestFault)
  assert.throws(() => parseJson(Buffer.from(deep(1_000_000))), RequestFault)
  assert.ok(Array.isArray(parseJson(Buffer.from(deep(8_000)))))
  assert.equal(({} as { x?: unknown }).x, undefined)
})

const crowds: [name: string, value: string][] = [
  ['objects', '{}'],
  ['texts', '""'],
  ['numbers', '1'],
  ['lists in lists', '['],
]

for (const [name, value] of crowds)
  test(`hostile 8, check 74: 16 MiB of ${name} are refused before they are values`, () => {
    const body = Buffer.from(`{"to":[${`${value},`.repeat((16 << 20) / (value.length + 1))}""]}`)
    const refuse = () =>
      assert.throws(() => parseJson(body), { code: 'invalid_json', message: /more than 20000 values/ })
    inCpuTime(1_000, refuse)
  })

test('check 74: text content does not count as values, however it is escaped', () => {
  const text = '[{,"\\\\'.repeat(20_000)
  assert.deepEqual(parseJson(Buffer.from(JSON.stringify({ text, a: [1, '\\'] }))), { text, a: [1, '\\'] })
})

test('a refusal names the position in the text', () => {
  assert.throws(() => parseJson(Buffer.from('{"to":[{"name":"\\u0000"}]}')), /^RequestFault: \/to\/0\/name /)
})

test('the body limit leaves room for base64 above the content limit', () => {
  assert.equal(bodyLimitBytes(10 << 20), 15 * (1 << 20) + (1 << 20))
})
