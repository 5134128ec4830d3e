// Tests composed messages line by line.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inCpuTime } from '../../../tests/support/cpu-time.ts'
import { compose, type Draft, type DraftAttachment } from './compose.ts'

const draft: Draft = {
  from: { email: 'ann@a.example', name: 'Ann' },
  to: [{ email: 'bob@b.example' }],
  cc: [],
  replyTo: null,
  subject: 'Hello',
  text: 'Hi\n',
  html: null,
  messageId: '<1@a.example>',
  inReplyTo: null,
  references: [],
  date: new Date('2026-11-21T09:05:07Z'),
  headers: {},
  attachments: [],
  seed: 'seed',
}
const file: DraftAttachment = {
  filename: 'f.txt',
  contentType: 'text/plain',
  content: Buffer.from('file'),
  contentId: null,
  disposition: 'attachment',
}
const image: DraftAttachment = {
  ...file,
  filename: 'i.png',
  contentType: 'image/png',
  contentId: 'i',
  disposition: 'inline',
}

const header = (one: Partial<Draft>) =>
  compose({ ...draft, ...one })
    .toString()
    .split('\r\n\r\n')[0]!
const fields = (one: Partial<Draft>, name: string) =>
  header(one)
    .split(/\r\n(?! )/)
    .filter((field) => field.startsWith(`${name}:`))
    .map((field) => field.slice(name.length + 2))

test('check 39: a plain message has exactly the expected bytes', () => {
  assert.equal(
    compose({
      ...draft,
      cc: [{ email: 'cy@c.example', name: 'Cy' }],
      replyTo: { email: 'desk@a.example' },
      inReplyTo: '<0@b.example>',
      references: ['<00@b.example>', '<0@b.example>'],
      headers: { 'x-campaign': 'spring' },
    }).toString(),
    [
      'Date: Sat, 21 Nov 2026 09:05:07 +0000',
      'From: Ann <ann@a.example>',
      'To: bob@b.example',
      'Cc: Cy <cy@c.example>',
      'Reply-To: desk@a.example',
      'Subject: Hello',
      'Message-ID: <1@a.example>',
      'In-Reply-To: <0@b.example>',
      'References: <00@b.example> <0@b.example>',
      'x-campaign: spring',
      'MIME-Version: 1.0',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Transfer-Encoding: 7bit',
      '',
      'Hi',
      '',
    ].join('\r\n'),
  )
})

/** The tree of content types, as `mixed(alternative(plain html) pdf)`. */
function shape(raw: string): string {
  const end = raw.indexOf('\r\n\r\n')
  const head = raw.slice(0, end)
  const type = /Content-Type: [a-z]+\/([a-z0-9.-]+)/i.exec(head)![1]!
  const boundary = /boundary="([^"]+)"/.exec(head)?.[1]
  if (boundary === undefined) return type
  const parts = `\r\n${raw.slice(end + 4)}`.split(`\r\n--${boundary}`)
  assert.equal(parts.at(-1), '--\r\n')
  return `${type}(${parts
    .slice(1, -1)
    .map((part) => shape(part.slice(2)))
    .join(' ')})`
}

const html = '<img src="cid:i">'
const shapes: [string, Partial<Draft>, string][] = [
  ['text', {}, 'plain'],
  ['html', { text: null, html }, 'html'],
  ['text and html', { html }, 'alternative(plain html)'],
  ['neither', { text: null }, 'plain'],
  ['a file only', { text: null, attachments: [file] }, 'mixed(plain)'],
  ['text and files', { attachments: [file, image] }, 'mixed(plain plain png)'],
  ['html and its image', { text: null, html, attachments: [image] }, 'related(html png)'],
  ['text, html and its image', { html, attachments: [image] }, 'alternative(plain related(html png))'],
  [
    'all',
    { html, attachments: [file, image, file] },
    'mixed(alternative(plain related(html png)) plain plain)',
  ],
  [
    'inline without an id',
    { html, attachments: [{ ...image, contentId: null }] },
    'mixed(alternative(plain html) png)',
  ],
]

for (const [what, one, expected] of shapes) {
  test(`a message with ${what} has the structure ${expected}`, () => {
    assert.equal(shape(compose({ ...draft, ...one }).toString()), expected)
  })
}

test('a boundary never occurs in a part, whatever the sender writes', () => {
  const boundary = /boundary="([^"]+)"/.exec(header({ html }))![1]!
  const text = `--${boundary}\n--${boundary}--\n`
  const raw = compose({ ...draft, html, text }).toString()
  assert.equal(shape(raw), 'alternative(plain html)')
})

test('boundaries differ by seed and level, and stay the same at every retry', () => {
  const boundaries = (seed: string) =>
    compose({ ...draft, seed, html, attachments: [image, file] })
      .toString()
      .match(/boundary="[^"]+"/g)!
  assert.equal(new Set([...boundaries('a'), ...boundaries('b')]).size, 6)
  assert.deepEqual(boundaries('a'), boundaries('a'))
})

const types: [string, string, string][] = [
  ['text/csv', 'text/csv; name="f.txt"', 'base64'],
  [
    'text/calendar; method=REQUEST;charset="utf-8"',
    'text/calendar; method=REQUEST; charset="utf-8"; name="f.txt"',
    'base64',
  ],
  ['application/x; name=evil; boundary=b', 'application/x; name="f.txt"', 'base64'],
  ['nonsense', 'application/octet-stream; name="f.txt"', 'base64'],
  ['text/plain\r\nX-Evil: 1', 'application/octet-stream; name="f.txt"', 'base64'],
  ['text/plain; a=b c', 'application/octet-stream; name="f.txt"', 'base64'],
  ['multipart/mixed; boundary=b', 'application/octet-stream; name="f.txt"', 'base64'],
  ['message/rfc822', 'message/rfc822; name="f.txt"', '7bit'],
]

for (const [given, written, encoding] of types) {
  test(`check 39: the content type ${JSON.stringify(given)} is written as ${written}`, () => {
    const content = Buffer.from('Subject: s\r\n\r\nb\r\n')
    const raw = compose({ ...draft, attachments: [{ ...file, contentType: given, content }] }).toString()
    assert.ok(raw.replaceAll('\r\n ', ' ').includes(`\r\nContent-Type: ${written}\r\n`), raw)
    assert.ok(raw.includes(`filename="f.txt"\r\nContent-Transfer-Encoding: ${encoding}\r\n`), raw)
  })
}

test('a message that cannot be attached as a message is attached as plain bytes', () => {
  for (const content of ['Subject: s\n\nb', 'Subject: \xfc\r\n\r\n', '--=_x\r\n', `${'x'.repeat(999)}\r\n`]) {
    const attached = { ...file, contentType: 'message/rfc822', content: Buffer.from(content, 'latin1') }
    assert.ok(compose({ ...draft, attachments: [attached] }).includes('application/octet-stream;'))
  }
})

test('References keeps the first id and the newest ids, within bounds', () => {
  const ids = Array.from({ length: 1000 }, (_, index) => `<${index}@thread.example>`)
  const [kept] = fields({ references: ids }, 'References')
  const list = kept!.split(/\s+/)
  assert.ok(kept!.length < 4500 && list.length > 100)
  assert.deepEqual(
    [list[0], list[1], list.at(-1)],
    ['<0@thread.example>', `<${1001 - list.length}@thread.example>`, '<999@thread.example>'],
  )
})

test('ids that cannot be written are left out', () => {
  const bad = ['<a b@c>', '<\r\nX: y@c>', 'none', '<ü@c>', `<${'x'.repeat(1000)}@c>`, '<<a@c>>', '']
  assert.deepEqual(fields({ references: [...bad, '<1@c>'] }, 'References'), ['<1@c>'])
  assert.deepEqual(fields({ references: bad }, 'References'), [])
  for (const inReplyTo of bad) assert.deepEqual(fields({ inReplyTo }, 'In-Reply-To'), [])
})

test('a message to hidden recipients alone has an empty group in To', () => {
  assert.deepEqual(fields({ to: [] }, 'To'), ['undisclosed-recipients:;'])
  assert.deepEqual(fields({ to: [], cc: [{ email: 'c@c.example' }] }, 'To'), [])
})

const bugs: [string, Partial<Draft>][] = [
  ['a further field that is written anyway', { headers: { subject: 'again' } }],
  ['a further field in other case', { headers: { 'CONTENT-Type': 'x/y' } }],
  ['a further field with a colon', { headers: { 'x:y': 'z' } }],
  ['a message id without brackets', { messageId: '1@a.example' }],
  ['an invalid date', { date: new Date(Number.NaN) }],
  ['a content id with brackets', { attachments: [{ ...image, contentId: '<i>' }] }],
]

for (const [what, one] of bugs) {
  test(`check 39: ${what} throws as a bug`, () => {
    assert.throws(() => compose({ ...draft, ...one }), { name: 'Error' })
  })
}

test('only an address beyond ASCII makes the header UTF-8', () => {
  const raw = compose({ ...draft, to: [{ email: 'ü@b.example' }], subject: 'ü' }).toString()
  assert.ok(raw.includes('To: ü@b.example\r\n') && raw.includes('Subject: =?UTF-8?'))
})

test('composing a large attachment takes linear time', () => {
  const attachments = [{ ...file, content: Buffer.alloc(10 << 20, 7) }]
  const raw = inCpuTime(2_000, () => compose({ ...draft, attachments }))
  assert.ok(raw.length > 13 << 20)
})
