// Tests header fields: folding, encoded words, parameters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressField, fallbackParameter, fold, parameter, unstructuredField } from './header-encode.ts'

const long = 'X'.repeat(80)

const unstructured: [string, string, string][] = [
  ['plain text', 'Hello, world!', 'Subject: Hello, world!\r\n'],
  ['nothing', '', 'Subject:\r\n'],
  [
    'plain text is folded between words',
    `${'word '.repeat(14)}word`,
    `Subject: ${'word '.repeat(12)}word\r\n word word\r\n`,
  ],
  ['a long word stays whole', `${long} ${long}`, `Subject: ${long}\r\n ${long}\r\n`],
  ['a word that no line holds is encoded', 'X'.repeat(901), ''],
  ['spaces that a reader might drop are encoded', 'two  spaces', 'Subject: =?UTF-8?Q?two__spaces?=\r\n'],
  ['a space at the end is encoded', 'end ', 'Subject: =?UTF-8?Q?end_?=\r\n'],
  ['a tab is encoded', 'some\ttext', 'Subject: =?UTF-8?Q?some=09text?=\r\n'],
  ['text that looks encoded is encoded', '=?x?Q?y?=', 'Subject: =?UTF-8?B?PT94P1E/eT89?=\r\n'],
  [
    'mostly ASCII takes Q',
    'Grüße an alle im Haus heute',
    'Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe_an_alle_im_Haus_heute?=\r\n',
  ],
  ['mostly other scripts take B', '漢字', 'Subject: =?UTF-8?B?5ryi5a2X?=\r\n'],
]

for (const [what, value, field] of unstructured) {
  test(`unstructured text is encoded: ${what}`, () => {
    const written = unstructuredField('Subject', value)
    if (field !== '') assert.equal(written, field)
    assert.ok(written.split('\r\n').every((line) => line.length <= 998))
  })
}

test('check 40: encoded-words hold whole characters, up to 75 octets, on lines up to 76', () => {
  for (const text of ['🦄'.repeat(500), 'é'.repeat(998), `${'a'.repeat(900)}é`, '👩‍👩‍👧 '.repeat(50)]) {
    const lines = unstructuredField('X-Entity-Ref-ID', text).split('\r\n')
    assert.ok(lines.every((line) => line.length <= 76))
    for (const word of lines.join('').match(/=\?[^ ]+\?=/g)!) {
      assert.ok(word.length <= 75)
      const [, , kind, encoded] = word.split('?') as [string, string, string, string]
      const percents = encoded.replaceAll('=', '%').replaceAll('_', ' ')
      const decoded = kind === 'B' ? Buffer.from(encoded, 'base64').toString() : decodeURIComponent(percents)
      assert.doesNotMatch(decoded, /\ufffd/)
    }
  }
})

const x70 = 'x'.repeat(70)

test('a word that does not fit on the line of its field’s name begins on the next line', () => {
  assert.equal(fold('In-Reply-To', [`<${x70}>`]), `In-Reply-To:\r\n <${x70}>\r\n`)
  assert.equal(fold('Subject', [x70.slice(0, 60), 'word']), `Subject: ${x70.slice(0, 60)} word\r\n`)
  assert.equal(fold('Message-ID', [`<${x70}${x70}>`]), `Message-ID: <${x70}${x70}>\r\n`, 'no line holds it')
  const name = '"'.repeat(50)
  const lines = addressField('To', [{ email: 'a@b.example', name }]).split('\r\n')
  assert.ok(
    lines.every((line) => line.length <= 76),
    'its backslashes double the length of a quoted name',
  )
})

const names: [string, string | undefined, string][] = [
  ['no name', undefined, 'To: a@b.example\r\n'],
  ['an empty name', '', 'To: a@b.example\r\n'],
  ['words', 'Ann Lee', 'To: Ann Lee <a@b.example>\r\n'],
  ['punctuation is quoted', 'Lee, Ann (HR)', 'To: "Lee, Ann (HR)" <a@b.example>\r\n'],
  ['quotes and backslashes are escaped', 'the "A\\B"', 'To: "the \\"A\\\\B\\"" <a@b.example>\r\n'],
  ['an address in a name stays text', '<c@d.example>,', 'To: "<c@d.example>," <a@b.example>\r\n'],
  ['other scripts', '漢字', 'To: =?UTF-8?B?5ryi5a2X?= <a@b.example>\r\n'],
  ['an encoded-word in a name stays text', '=?x?Q?y?=', 'To: =?UTF-8?B?PT94P1E/eT89?= <a@b.example>\r\n'],
]

for (const [what, name, field] of names) {
  test(`check 40: a display name is encoded: ${what}`, () => {
    assert.equal(
      addressField('To', [name === undefined ? { email: 'a@b.example' } : { email: 'a@b.example', name }]),
      field,
    )
  })
}

test('addresses are separated by commas and folded between mailboxes', () => {
  const mailboxes = [1, 2, 3].map((number) => ({
    email: `person${number}@company.example`,
    name: `Person ${number}`,
  }))
  assert.equal(
    addressField('To', mailboxes),
    'To: Person 1 <person1@company.example>, Person 2 <person2@company.example>,\r\n Person 3 <person3@company.example>\r\n',
  )
})

const written = [
  'a@b.example',
  '"a b"@c.example',
  '"a\\"b"@c.example',
  '"a@evil.example x"@c.example',
  'ü@c.example',
]
const unwritable = [
  'a b@c',
  'a@b@c',
  'a',
  '@b',
  'a@',
  '<a@b>',
  'a@b>',
  'a,b@c',
  '"a"b@c',
  '"a@c',
  'a@b\r\nX: y',
  'a@b c',
  'a@b, c@d',
  '"\n"@b',
]

test('check 41: an address is written unchanged, or refused', () => {
  for (const email of written) assert.equal(addressField('To', [{ email }]), `To: ${email}\r\n`)
  for (const email of unwritable) assert.throws(() => addressField('To', [{ email }]), /address/, email)
})

test('check 39: line breaks and NUL are refused in every kind of field', () => {
  for (const bad of ['a\rb', 'a\nb', 'a\0b', 'a\r\nBcc: c@d.example']) {
    assert.throws(() => unstructuredField('Subject', bad), /line break/)
    assert.throws(() => addressField('To', [{ email: 'a@b.example', name: bad }]), /line break/)
    assert.throws(() => parameter('filename', bad), /line break/)
    assert.throws(() => fallbackParameter('name', bad), /line break/)
  }
})

const parameters: [string, string, string[], string][] = [
  ['ASCII', 'a b.pdf', ['filename="a b.pdf"'], 'name="a b.pdf"'],
  ['a quote', 'some"name', ["filename*=utf-8''some%22name"], 'name="=?UTF-8?Q?some=22name?="'],
  ['umlauts', 'Ü.pdf', ["filename*=utf-8''%C3%9C.pdf"], 'name="=?UTF-8?B?w5wucGRm?="'],
]

for (const [what, value, modern, old] of parameters) {
  test(`check 63: a parameter is encoded: ${what}`, () => {
    assert.deepEqual(parameter('filename', value), modern)
    assert.equal(fallbackParameter('name', value), old)
  })
}

test('check 63: a long file name is split into numbered pieces that fit a line', () => {
  const pieces = parameter('filename', 'ü'.repeat(2000))
  assert.ok(pieces.length > 100)
  assert.match(pieces[0]!, /^filename\*0\*=utf-8''/)
  assert.match(pieces[150]!, /^filename\*150\*=%/)
  const lines = fold('Content-Disposition', ['attachment;', ...pieces]).split('\r\n')
  assert.ok(lines.every((line) => line.length <= 78))
})
