// Generates strings of each format or pattern in the document: valid ones, valid ones of a given length, and invalid ones.
import fc from 'fast-check'
import { patterns as written } from '../../../src/http/schemas/patterns.ts'
import type { Schema } from './document.ts'

export interface TextKind {
  some: fc.Arbitrary<string>
  /** Returns a valid text of `length` code points, or null if there is none. */
  ofLength(length: number): string | null
  /** Each text breaks the format or the pattern, and nothing else. */
  wrong: readonly string[]
}

const astral = '\u{1f600}'

/** Any text that JSON can carry and the service accepts: no NUL and no lone surrogates. */
const free = fc
  .oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: 'binary' }),
    fc.constantFrom(
      '\ufeff',
      '\u2028',
      '\u202e',
      '<!--',
      "'; drop table message; --",
      '%00',
      '../..',
      '{{7*7}}',
      astral,
    ),
  )
  .map((text) => text.replaceAll('\0', ''))
const oneLine = free.map((text) => text.replace(/\p{Cc}/gu, ''))
const fromAstral = (length: number) => astral.repeat(length)

const label = fc
  .stringMatching(/^[a-z]([a-z0-9-]{0,10}[a-z0-9])?$/)
  .filter((text) => text.slice(2, 4) !== '--')
const idnLabel = fc.constantFrom('bücher', 'пример', 'παράδειγμα', '例え', '測試', 'xn--bcher-kva')
const hostOf = (some: fc.Arbitrary<string>) =>
  fc
    .tuple(fc.array(some, { minLength: 1, maxLength: 3 }), label)
    .map(([labels, last]) => [...labels, last, 'example'].join('.'))
const host = hostOf(fc.oneof({ weight: 5, arbitrary: label }, idnLabel))
const asciiHost = hostOf(fc.oneof({ weight: 5, arbitrary: label }, fc.constant('xn--bcher-kva')))
const atom = fc.stringMatching(/^[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]{1,12}$/)
const localPart = fc.oneof(
  { weight: 6, arbitrary: fc.array(atom, { minLength: 1, maxLength: 3 }).map((atoms) => atoms.join('.')) },
  fc.constantFrom('jürgen', '用户', 'o\u0301', '"a b"', '"a@evil.example x"', '"\\""', '""', 'a+tag'),
)
const address = fc.tuple(localPart, fc.oneof({ weight: 1, arbitrary: fc.constant('far.test') }, host))
const email = address.map(([local, domain]) => `${local}@${domain}`)
/** Returns a host of this many characters, in labels of up to 63, or null. */
function hostOfLength(length: number): string | null {
  const end = '.example'
  if (length <= end.length) return null
  let rest = length - end.length
  const labels: string[] = []
  for (; rest > 63; rest -= 32) labels.push('a'.repeat(31))
  return [...labels, 'b'.repeat(rest)].join('.') + end
}

const wrongEmails = [
  ...[
    'nobody',
    '@far.test',
    'a@',
    'a b@far.test',
    'a@b c',
    '<a@far.test>',
    'A <a@far.test>',
    'a@far.test\r\n',
  ],
  ...[
    'a..b@far.test',
    '.a@far.test',
    'a.@far.test',
    '"a@far.test',
    'a@far.test, b@far.test',
    'a@far_.test',
    '',
  ],
]
const wrongTimes = [
  ...['yesterday', '', '2026-11-21', '2026-02-30T00:00:00Z', '2016-12-31T23:59:60Z', '2026-11-21 00:00:00Z'],
  ...[
    '2026-11-21T24:30:00Z',
    '2026-11-21T00:00:00',
    '2026-11-21T00:00:00+24:00',
    '2026-11-21T00:00:00Z\n',
    '0',
  ],
]
const time = fc
  .tuple(
    fc.date({ noInvalidDate: true, min: new Date('0001-01-01'), max: new Date('9999-12-30') }),
    fc.constantFrom('Z', '+00:00', '-12:00', '+23:59'),
    fc.constantFrom('', '.1', '.123', '.123456789'),
  )
  .map(([date, zone, fraction]) => date.toISOString().slice(0, 19) + fraction + zone)

const formats: Record<string, TextKind> = {
  'idn-email': {
    some: email,
    ofLength: (length) => (length > 254 ? null : `a@${hostOfLength(length - 2)}`),
    wrong: [...wrongEmails, `${'a'.repeat(65)}@far.test`, 'a@[127.0.0.1]', 'a@-far.test', 'a@1.2.3.4'],
  },
  email: { some: email, ofLength: (length) => `${'a'.repeat(length - 9)}@far.test`, wrong: wrongEmails },
  'date-time': { some: time, ofLength: () => null, wrong: wrongTimes },
}

const subject = {
  some: oneLine.map((text) => `s${text}`),
  ofLength: fromAstral,
  wrong: ['', ' ', ' \u00a0\u200b\u3000', 'a\r\nBcc: b@far.test', 'a\nb', 'a\u0085', 'a\u007fb'],
}

/** Patterns from which no texts can be generated. Texts for all other patterns are generated. */
const patterns: Record<string, TextKind> = {
  [written.oneLine[0]]: {
    some: oneLine,
    ofLength: fromAstral,
    wrong: ['a\r\nX: y', 'a\nb', 'a\tb', 'a\u0085b', 'a\u007f', '\u0001'],
  },
  [written.headerValue[0]]: {
    some: oneLine,
    ofLength: fromAstral,
    wrong: ['a\r\nBcc: b@far.test', 'a\rb', 'a\n', '\n'],
  },
  [written.subject[0]]: subject,
  [written.filename[0]]: {
    some: oneLine.map((text) => text.replace(/[/\\]/g, '_')).map((text) => text || '.'),
    ofLength: fromAstral,
    wrong: ['../a', 'a\\b', '/etc/passwd', 'a\u0002b', 'a\r\nb'],
  },
  [written.localPart[0]]: {
    some: fc
      .stringMatching(/^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,62}[a-zA-Z0-9])?$/)
      .map((text) => text.replace(/\.{2,}/g, '-'))
      // Mostly unused names, so that the service accepts most of them.
      .chain((text) => fc.integer({ min: 0, max: 1e9 }).map((number) => `${text.slice(0, 50)}${number}`)),
    ofLength: (length) => 'l'.repeat(length),
    wrong: [
      'a..b',
      '.a',
      'a.',
      '-a',
      'a_',
      'ä',
      'a b',
      'a@b',
      'a+b',
      '\u212aey',
      '',
      'a/b',
      'a\n',
      'a'.repeat(65),
    ],
  },
}

const mediaTypes = [
  'text/plain',
  'TEXT/CSV',
  'text/calendar; method=REQUEST',
  'a/b;c="d e"',
  "x-!#$%&'*+.^_`{|}~/-",
]
const mediaType: TextKind = {
  some: fc.constantFrom(...mediaTypes),
  ofLength: mediaTypeOfLength,
  wrong: [
    'text',
    '/',
    'text/',
    'text/plain;',
    'text/plain\r\nX: y',
    'a/b; c',
    'text/plain, a/b',
    'tëxt/plain',
    '',
  ],
}

function mediaTypeOfLength(length: number): string {
  let text = 'a/b'
  for (let rest = length - text.length; rest > 0; rest = length - text.length) {
    const one = rest <= 70 ? rest : rest < 80 ? 40 : 60
    text += `;c=${'d'.repeat(one - 3)}`
  }
  return text
}

const base64: TextKind = {
  some: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  ofLength: () => null,
  wrong: ['QQ', 'Q', 'QQ=', '-_8=', 'QR==', 'QQ==\n', 'QUFB\nQUFB', 'Ä===', ' ', '===='],
}

/** Rules that the document states only in words, by the name of the property or parameter. */
const named: Record<string, Omit<TextKind, 'ofLength'> & { ofLength?: TextKind['ofLength'] }> = {
  domain: {
    some: host.chain((name) => fc.constantFrom(name, `${name}.`, ` ${name} `, name.toUpperCase())),
    ofLength: hostOfLength,
    wrong: [
      ...['localhost', 'com', 'co.uk', 'a b.example', '-a.example', 'a_b.example', '127.0.0.1', 'a..example'],
      ...['ab--c.example', 'xn--zzzzzz.example', 'a@b.example', 'https://a.example', '.', ' ', '.example'],
    ],
  },
  url: {
    some: fc
      .tuple(asciiHost, fc.webPath(), fc.webQueryParameters(), fc.constantFrom('', ':8443', ':443', ':65535'))
      .map(([name, path, query, port]) => `https://${name}${port}${path}${query && `?${query}`}`),
    ofLength: (length) => (length < 30 ? null : 'https://app.example.com/'.padEnd(length, 'p')),
    wrong: [
      ...[
        'http://app.example.com/',
        'https://127.0.0.1/',
        'https://2130706433/',
        'https://0x7f.1/',
        'https://[::1]/',
      ],
      ...[
        'https://u:p@app.example.com/',
        'https://app.example.com:22/',
        'file:///etc/passwd',
        'gopher://a.example/',
      ],
      ...[
        'https://localhost/',
        'https://app.example.com./',
        'nonsense',
        'https://',
        'https://a.example/#x',
        'https://a b/',
      ],
      ...[
        'https://app.example.com:65536/',
        'https://app.example.com:0443/',
        'https://a_b.example.com/',
        'https://bücher.example/',
        'HTTPS://app.example.com/',
        'https://app.example.com/ü',
        'https://app.example.com/a|b',
        'https://app.example.com/%zz',
      ],
      ...[
        'https://169.254.169.254/latest',
        'https://[::ffff:127.0.0.1]/',
        'https://10.0.0.1/',
        'https://a.internal/',
      ],
    ],
  },
  q: { some: label.map((word) => `w${word.replaceAll('-', '')}`), wrong: [] },
}

/** Returns the kind of a string's schema. `name` is its property or parameter. */
export function textKind(schema: Schema, name: string): TextKind {
  const { format, pattern, contentEncoding } = schema
  const own = named[name]
  if (own)
    return { ofLength: (length) => 'w'.repeat(length), ...own, wrong: [...own.wrong, ...wrongBy(pattern)] }
  if (format && formats[format]) return formats[format]
  if (contentEncoding === 'base64' || format === 'byte') return base64
  if (pattern === undefined) return { some: free, ofLength: fromAstral, wrong: [] }
  if (patterns[pattern]) return patterns[pattern]
  if (new RegExp(pattern, 'u').test('text/calendar; method=REQUEST')) return mediaType
  return byExpression(pattern)
}

function wrongBy(pattern: string | undefined): readonly string[] {
  return pattern === undefined ? [] : (patterns[pattern]?.wrong ?? [])
}

function byExpression(pattern: string): TextKind {
  const expression = new RegExp(pattern, 'u')
  const [example] = fc.sample(fc.stringMatching(expression), { numRuns: 1, seed: 1 })
  const changed = [
    ...[
      `${example}\n`,
      `${example} `,
      ` ${example}`,
      `${example}é`,
      `${example}/`,
      example!.slice(0, -1),
      '',
    ],
    ...[example!.toUpperCase(), `${example}0`, `x${example}`, example!.replaceAll('-', ''), `{${example}}`],
  ]
  return {
    some: fc.stringMatching(expression),
    ofLength: (length) =>
      ['a', '0'].map((one) => one.repeat(length)).find((text) => expression.test(text)) ?? null,
    wrong: changed.filter((text) => !expression.test(text)),
  }
}
