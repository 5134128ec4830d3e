// The messages in docs/trust.md have the documented form, and its functions handle them as it says.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { judgeStrictly, readDocument } from './document.ts'
import { setStage } from './stage.ts'

interface Received {
  from: { email: string }
  inboundSecurity: { authentication: { dmarc: string } }
}
interface Functions {
  provedSender(message: Received): string | null
  mayAct(message: Received, allowed: Set<string>): boolean
  isSignedBy(source: string, domain: string): boolean
}

const page = readFileSync(join(import.meta.dirname, '../../docs/trust.md'), 'utf8')
const blocks = (language: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'))].map(([, text]) => text!)
const messages: Received[] = blocks('json').map((text) => JSON.parse(text))

const folder = mkdtempSync(join(tmpdir(), 'posthorn-trust-'))
after(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'page.ts')
writeFileSync(
  file,
  blocks('ts')
    .filter((text) => text.includes('export function'))
    .join('\n'),
)
const { provedSender, mayAct, isSignedBy }: Functions = await import(file)

test('the examples of docs/trust.md match the OpenAPI document', async () => {
  const stage = await setStage({ after })
  const document = await readDocument(stage.base)
  const security = judgeStrictly(document, document.components.schemas['InboundSecurity']!)
  assert.equal(messages.length, 3)
  for (const { inboundSecurity } of messages) {
    const [isRight, errors] = security.Errors(inboundSecurity)
    assert.ok(isRight, JSON.stringify(errors))
  }
})

test('among boss, newsletter and list, only the newsletter has a proved sender', () => {
  assert.deepEqual(messages.map(provedSender), [null, 'news@shop.example', null])
  const [boss] = messages
  const allowed = new Set(['ada@example.com'])
  assert.equal(mayAct(boss!, allowed), false)
  const passed = { authentication: { dmarc: 'pass' } }
  assert.equal(mayAct({ from: { email: 'Ada@Example.com' }, inboundSecurity: passed }, allowed), true)
  assert.equal(mayAct({ from: { email: 'ada@examp1e.com' }, inboundSecurity: passed }, allowed), false)
})

const first =
  'Return-Path: <a@b.test>\r\nAuthentication-Results: mx.near.test;\r\n spf=pass smtp.mailfrom=b.test'
const sources: [what: string, source: string, isSigned: boolean][] = [
  [
    'signed by the list',
    `${first};\r\n dkim=pass header.d=lists.example.net header.s=a;\r\n arc=none\r\n\r\n`,
    true,
  ],
  ['signed by another', `${first};\r\n dkim=pass header.d=lists.example.net.evil.test\r\n\r\n`, false],
  ['signed by the list, and changed since', `${first}; dkim=fail header.d=lists.example.net\r\n\r\n`, false],
  [
    'a result that the mail itself brings',
    `${first}\r\nAuthentication-Results: mx.near.test; dkim=pass header.d=lists.example.net\r\n\r\n`,
    false,
  ],
  [
    'a return path that reads like a result',
    `${first.replace('=b.test', String.raw`="\"; dkim=pass header.d=lists.example.net \"@b.test"`)}\r\n\r\n`,
    false,
  ],
  [
    'signed by the list, below such a return path',
    `${first.replace('=b.test', String.raw`="\"a;b\"@b.test"`)};\r\n dkim=pass reason="1;2" header.d=lists.example.net\r\n\r\n`,
    true,
  ],
  ['an empty source', '', false],
]

for (const [what, source, isSigned] of sources)
  test(`the list’s signature is ${isSigned ? 'found' : 'not found'}: ${what}`, () =>
    assert.equal(isSignedBy(source, 'lists.example.net'), isSigned))
