// All engines read the patterns of both documents alike, and the service accepts what its URL and domain patterns accept.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { patterns } from '../../src/http/schemas/patterns.ts'
import { normalizeDomain, trimDomain } from '../../src/mail/domain-name.ts'
import { AddressGuard } from '../../src/webhook/address-guard.ts'
import { inCpuTime } from '../support/cpu-time.ts'
import { ask, setStage } from './stage.ts'

const stage = await setStage({ after })

/** Adds every pattern in the document to `found`. */
function patternsIn(value: unknown, found: Set<string>): Set<string> {
  if (value === null || typeof value !== 'object') return found
  const { pattern } = value as { pattern?: unknown }
  if (typeof pattern === 'string') found.add(pattern)
  for (const member of Object.values(value)) patternsIn(member, found)
  return found
}

const written = new Set<string>()
for (const path of ['/openapi.json', '/app/openapi.json'])
  patternsIn(await (await fetch(stage.base + path)).json(), written)

/** Escapes that engines read differently, such as classes of Unicode and \u. */
const foreignEscapes = /\\[^\x00-/:-@[-`{-\x7ftrnx]/
/** Lookarounds, named groups, and lazy and possessive quantifiers. */
const foreignGroups = /\(\?(?!:)|[*+?}][?+]/
const withoutClasses = (pattern: string) => pattern.replace(/\[(?:\\.|[^\]\\])*\]/g, '[]')
/** The pattern exactly as published. */
const published = patterns.localPart[0]
/** Patterns from which no texts can be generated, or not in time. */
const isSlow = (pattern: string) =>
  [published, patterns.url[0], patterns.domain[0]].includes(pattern as never)

test('every pattern has one meaning in all engines, with flags and without', () => {
  assert.ok(written.size >= 15, `${written.size} patterns`)
  for (const pattern of written) {
    if (pattern !== published) assert.doesNotMatch(withoutClasses(pattern), foreignGroups)
    assert.doesNotMatch(pattern.replaceAll('\\\\', ''), foreignEscapes)
    assert.match(pattern, /^\^.*\$$/s)
    const [plain, withU, withS] = [new RegExp(pattern), new RegExp(pattern, 'u'), new RegExp(pattern, 's')]
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      ...(isSlow(pattern) ? [fc.string()] : [fc.stringMatching(plain)]),
      fc.constantFrom('\u{1f600}', 'a\u{1f600}b', '\u2028', '\u00a0', '\ud800', '\u{e0041}', 'x\n'),
    )
    const property = fc.property(text, (one) => {
      assert.equal(withU.test(one), plain.test(one))
      assert.equal(withS.test(one), plain.test(one))
    })
    fc.assert(property, { numRuns: 200 })
  }
})

test('hostile 2: a long text that nearly fits a pattern is refused in bounded time', () => {
  const runs = [
    'a',
    '-',
    '.',
    'a.',
    '\u3000',
    '\u3002',
    'ü',
    'ü\u3002',
    ':',
    '%',
    '1:',
    ' ',
    '%41',
    '1.',
    ';a=b',
  ]
  for (const pattern of written) {
    const expression = new RegExp(pattern, 'u')
    for (const begin of ['', 'https://', 'https://[', 'https://a/', 'a/a'])
      for (const run of runs) {
        const text = `${begin}${run.repeat(4_000)}\n`
        inCpuTime(500, () => expression.test(text), `${pattern} of ${JSON.stringify(begin + run)}`)
      }
  }
})

const hostileParts = [
  ...[
    '',
    ' ',
    '.',
    '..',
    '-',
    '--',
    '_',
    '@',
    ':',
    '/',
    '//',
    '#',
    '?',
    '\\',
    '%',
    '%zz',
    '%41',
    '[',
    ']',
    '\0',
  ],
  ...[
    '\n',
    'ü',
    '\u3002',
    '\u00ad',
    '\u200d',
    '\ufeff',
    '\u{1f600}',
    'xn--',
    '0x7f',
    '1',
    ':25',
    ':0',
    ':65536',
  ],
]
/** Generates texts with one character added, removed or replaced. */
const mutated = (texts: fc.Arbitrary<string>) =>
  fc
    .tuple(texts, fc.nat(), fc.constantFrom(0, 1), fc.constantFrom(...hostileParts))
    .map(([text, place, gone, part]) => {
      const at = place % (text.length + 1)
      return text.slice(0, at) + part + text.slice(at + gone)
    })

const some = (parts: string, maxLength: number) =>
  fc.array(fc.constantFrom(...parts.split(' ')), { maxLength }).map((chosen) => chosen.join(''))
const hosts = fc.oneof(
  ...[fc.domain(), fc.ipV4(), fc.ipV6().map((address) => `[${address}]`), some('a b - . 1 0x f A', 8)],
  fc.constantFrom('localhost', 'a.b.c', '[::1]', '[1::]', 'XN--BCHER-KVA.example'),
)
const paths = some('/ a . ~ % %41 %zz ? & = : @ ; , + ! $ ( ) * - _ # [ | ü', 6).map((path) => `/${path}`)
const urls = fc
  .tuple(fc.constantFrom('https', 'https', 'http'), hosts, some(':443 :8443 :0 :65535 :99999', 1), paths)
  .map(([scheme, host, port, path]) => `${scheme}://${host}${port}${path}`)
const url = new RegExp(patterns.url[0], 'u')
const isUrl = (text: string) => url.test(text) && text.length <= 2_048
const hostileUrls = [
  ...[
    'https://app.example.com',
    'https://app.example.com/',
    'https://a.example?x=1',
    'https://8.8.8.8/a?b=c',
  ],
  ...['https://[2001:4860:4860::8888]/', 'https://[::]/', 'https://[1:2:3:4:5:6:7:8]/', 'https://[1::8::2]/'],
  ...[
    'https://a.example/#',
    'https://u@a.example/',
    'https://a.example:/',
    'https://a.example:0/',
    'https:/a.b',
  ],
  ...[
    'https://1.2.3/',
    'https://1.2.3.256/',
    'https://0x7f.1/',
    'https://a.example./',
    'https://a..example/',
  ],
  ...[
    'https://-a.example/',
    'https://a_b.example/',
    'https://bücher.example/',
    'https://xn--bcher-kva.example/',
  ],
  ...[
    'https://a.example/ü',
    'https://a.example/a b',
    'https://a.example/%',
    'https://a.example/[x]',
    'ftp://a.b/',
  ],
  ...[
    'https://xn--zzzzzz.example/',
    'https://a.1/',
    'https://localhost/',
    'HTTPS://A.EXAMPLE/',
    'https://A.EXAMPLE/',
  ],
]

test('the service accepts every URL of the pattern, except by its port or A-label', () => {
  const open = new AddressGuard({ isPublic: () => true, allowPrivateNetworks: true, isDevelopment: false })
  const texts = fc.oneof(urls, fc.webUrl(), fc.constantFrom(...hostileUrls))
  let taken = 0
  const property = fc.property(fc.oneof(texts, mutated(texts)), (text) => {
    if (!isUrl(text)) return
    taken++
    const refusal = open.refusalOf(text)
    if (refusal === null || refusal.startsWith('must not name port')) return
    assert.match(text, /\/\/[^/?]*xn--/i, `${text} ${refusal}`)
  })
  fc.assert(property, { numRuns: 5_000 })
  assert.ok(taken > 1_000, `${taken} were taken`)
})

test('over HTTP, a URL outside the pattern is 400, and one inside fails only by address, port or A-labels', async () => {
  const { api } = await stage.createCaller({ key: { requestsPerMinute: 100_000 } })
  const body = { url: 'https://app.example.com/hooks' }
  const { id } = await api.want<{ id: string }>('/v1/webhooks', { method: 'POST', body, status: 201 })
  const counts = { taken: 0, refused: 0 }
  for (const text of [...hostileUrls, ...fc.sample(fc.oneof(urls, fc.webUrl(), mutated(urls)), 200)]) {
    const call = { method: 'PATCH', body: { url: text } }
    const { status, body: answer } = await api.call(`/v1/webhooks/${id}`, call)
    assert.ok(status === 200 || status === 400, `${text} ${status}`)
    counts[status === 200 ? 'taken' : 'refused']++
    if (status === 200) assert.ok(isUrl(text), text)
    else if (isUrl(text) && !/xn--/i.test(text)) {
      const words = /^\/url must (?:not name port|lead to a public address|begin with https)/
      assert.match((answer as { message: string }).message, words, text)
    }
  }
  assert.ok(counts.taken > 20 && counts.refused > 20, JSON.stringify(counts))
})

const labels = some('a b - 1 0x f A xn-- ü 例 \u3002 ab', 4)
const domains = fc
  .tuple(fc.array(labels, { minLength: 1, maxLength: 3 }), fc.constantFrom('', '.', '\u3000', ' '))
  .map(([parts, end]) => `${end.trim()}${parts.join('.')}.example${end}`)
const domain = new RegExp(patterns.domain[0], 'u')
const isAscii = (text: string) => Buffer.byteLength(text) === text.length
const hostileDomains = [
  ...[
    'example.com',
    ' example.com. ',
    'EXAMPLE.com',
    'a.b.example.com',
    'bücher.example',
    '例え。テスト',
    'пример.испытание',
  ],
  ...[
    'example',
    'example.',
    '.example.com',
    'a..example',
    'a_b.example',
    '-a.example',
    'a-.example',
    'ab--c.example',
  ],
  ...[
    'xn--bcher-kva.example',
    'xn--zzzzzz.example',
    '192.0.2.1',
    'a.0x1f',
    'a.1b',
    'a@b.example',
    'https://a.example',
  ],
  ...[
    'co.uk',
    'github.io',
    '☃.example',
    'a\u00adb.example',
    'a\ufeffb.example',
    '\u3000example.com\u00a0',
    'a b.example',
  ],
  ...[
    `${'a'.repeat(63)}.example`,
    `${'a'.repeat(64)}.example`,
    'a\u2024example',
    '。',
    '.',
    '',
    ' ',
    '\u200d.example',
  ],
]

test('the service accepts every domain of the pattern, except public suffixes and IDNA errors', () => {
  const texts = fc.oneof(domains, fc.domain(), fc.constantFrom(...hostileDomains))
  let [taken, accepted] = [0, 0]
  const property = fc.property(fc.oneof(texts, mutated(texts)), (text) => {
    if (!domain.test(text) || trimDomain(text).length > 253) return
    taken++
    const name = normalizeDomain(trimDomain(text))
    if (name.status === 'ok') accepted++
    else if (isAscii(text.trim()) && !/xn--/i.test(text)) assert.match(name.expected, /public suffix/, text)
  })
  fc.assert(property, { numRuns: 5_000 })
  assert.ok(taken > 1_000 && accepted > 300, `${taken} were taken, ${accepted} accepted`)
})

test('over HTTP, a domain outside the pattern is 400, and a registered one has the documented form', async () => {
  const caller = await stage.createCaller({
    limits: { domains: 1_000 },
    key: { requestsPerMinute: 100_000 },
  })
  const shown = new RegExp(patterns.writtenDomain[0])
  for (const text of [...hostileDomains, ...fc.sample(mutated(fc.domain()), 40)]) {
    const { status, body } = await ask(stage, 'POST', '/v1/domains', {
      secret: caller.secret,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ domain: text }),
    })
    assert.ok([201, 400, 409].includes(status), `${text} ${status}`)
    if (!domain.test(text)) assert.equal(status, 400, text)
    if (status === 201) assert.match(String(body['domain']), shown)
  }
})
