// Reading hostile mail of any bytes ends in linear time and returns well-formed strings.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseEmail, sameAddressKey } from '../../src/mail/address.ts'
import { parseAddressList } from '../../src/mail/read/address-list.ts'
import { htmlToText } from '../../src/mail/read/html-text.ts'
import { type ParsedMail, parseMail } from '../../src/mail/read/parse.ts'
import { extractNewText } from '../../src/mail/read/quote.ts'
import { inCpuTime } from '../support/cpu-time.ts'
import { decodeSpan, sha256 } from '../support/decode-span.ts'

const fields = 'From: a@b.example\r\nTo: c@d.example\r\nSubject: x\r\n'
const longestMs = 2000
const multipart = `${fields}Content-Type: multipart/mixed; boundary=b\r\n\r\n`
const html = `${fields}Content-Type: text/html\r\n\r\n`

function nested(levels: number): string {
  const starts = Array.from({ length: levels }, (_, level) => {
    return `Content-Type: multipart/mixed; boundary=b${level}\r\n\r\n--b${level}\r\n`
  })
  return `${fields}${starts.join('')}\r\nhello`
}

/**
 * Each structure grows with its number. The sizes are the largest that the limit of 25 MB, or the field's own limit,
 * allows.
 */
const structures: Record<string, string> = {
  '100,000 parts': `${multipart}${'--b\r\n\r\nx\r\n'.repeat(100_000)}--b--\r\n`,
  '10,000 levels': nested(10_000),
  '1,000,000 header fields': `${fields}${'X-A: b\r\n'.repeat(1_000_000)}\r\nbody`,
  'a header of 10 MB': `${fields}X-A: ${'b'.repeat(10 << 20)}\r\n\r\nbody`,
  'a folded header of 10 MB': `${fields}X-A: b${'\r\n bbbb'.repeat(1_500_000)}\r\n\r\nbody`,
  'a boundary of 1 MB': `${fields}Content-Type: multipart/mixed; boundary="${'b'.repeat(1 << 20)}"\r\n\r\n--${'b'.repeat(1 << 20)}\r\n\r\nx`,
  'lines that are nearly boundaries': `${multipart.replace('=b', '=bb')}${'--bx\r\n'.repeat(2_000_000)}`,
  'messages in messages': `${fields}${'Content-Type: message/rfc822\r\n\r\n'.repeat(1000)}hello`,
  'no closing boundary': `${multipart}--b\r\n\r\nx`,
  '100,000 references': `References: ${'<a@b> '.repeat(100_000)}\r\n\r\nx`,
  '10 MB of encoded words': `Subject: ${'=?utf-8?q?a?= '.repeat(800_000)}\r\n\r\nx`,
  '25 MB of base64 garbage': `${multipart}--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\nA${'!@#$%^&*()=\r\n'.repeat(1_900_000)}--b--`,
  '25 MB of quoted-printable garbage': `${multipart}--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n${'=   '.repeat(6_000_000)}\r\n--b--`,
  'UTF-7': `Content-Type: text/plain; charset=utf-7\r\n\r\n${'+AGE-'.repeat(200_000)}`,
  'parts with long names': `${multipart}${`--b\r\nContent-Type: a/b; name="${'=?utf-8?q?a?= '.repeat(900)}"\r\n\r\nx\r\n`.repeat(500)}--b--`,
}

for (const [name, structure] of Object.entries(structures)) {
  test(`check 59: a mail is read in bounded time: ${name}`, () => {
    readInTime(Buffer.from(structure, 'latin1'))
  })
}

const runs = [
  '(',
  '"',
  '\\',
  '<',
  '>',
  ' ',
  '.',
  '@',
  ',',
  ':',
  ';',
  '=',
  "'",
  '*',
  '%',
  '=?',
  '?=',
  '=?utf-8?q?',
  '=?utf-8?q?a? ',
]
const moreRuns = [
  'mailto:',
  'a ',
  ' a',
  '"a" ',
  'a@b,',
  '<a@b> ',
  'a=b;',
  '(a',
  '1 ',
  '1 jan ',
  '\t',
  '\u0000',
  'ÿ',
]
const names = ['From', 'Subject', 'Date', 'References', 'Message-ID', 'Content-Type', 'Content-Disposition']

for (const name of names) {
  test(`check 60: runs in ${name} take linear time`, () => {
    for (const run of [...runs, ...moreRuns]) {
      const value = run.repeat(Math.floor(250_000 / run.length))
      for (const prefix of ['', '"', 'a/b; name="', '<a@b']) {
        readInTime(Buffer.from(`${name}: ${prefix}${value}\r\n\r\nx`, 'latin1'))
      }
    }
  })
}

const texts = [
  'On ',
  'On \n',
  'Op schreef\n',
  '>',
  '\n',
  ' ',
  '-',
  'From: a\n',
  'Sent from ',
  'On x wrote on ',
  'a <b> wrote :\n',
  '_',
]
const tags = [
  '<',
  '<div>',
  '<a x="',
  "<a '>",
  '<!--',
  '<style>',
  '<style>x</style',
  '&#1',
  '&',
  '<a href=',
  '<pre>\n',
  '<li>',
  'x<b>',
]
const deepTags = [
  '<blockquote><br>a',
  '<table><tr><td>',
  '<a href="http://x">',
  '</blockquote>',
  '<br>',
  '<title>',
]

test('check 60: runs in text and in HTML take linear time', () => {
  for (const run of texts) {
    const text = run.repeat(Math.floor(250_000 / run.length))
    inTime(run, () => extractNewText(text))
    inTime(run, () => extractNewText(`${text}:`))
  }
  for (const run of [...tags, ...deepTags]) {
    readInTime(Buffer.from(html + run.repeat(Math.floor((1 << 20) / run.length)), 'latin1'))
  }
})

function inTime<Result>(name: string, run: () => Result): Result {
  return inCpuTime(longestMs, run, JSON.stringify(name.slice(0, 80)))
}

function readInTime(raw: Buffer): ParsedMail {
  const mail = inTime(raw.toString('latin1', 0, 80), () => parseMail(raw))
  assert.ok(isClean(mail))
  assert.ok(mail.attachments.length <= 999 && mail.references.length <= 100)
  return mail
}

/** Reports whether every string in the value is well-formed and without NUL. */
function isClean(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0')
  if (typeof value !== 'object' || value === null) return true
  return Object.values(value).every(isClean)
}

const piece = fc.oneof(
  fc.constantFrom(
    ...[
      '\r\n',
      '\n',
      '\r',
      '\r\n\r\n',
      '--b',
      '--b--',
      '--c',
      'Content-Type: ',
      'multipart/mixed; boundary=b',
      'text/html',
    ],
    ...[
      'multipart/alternative; boundary="c"',
      'message/rfc822',
      'Content-Transfer-Encoding: base64',
      'quoted-printable',
    ],
    ...[
      'Content-Disposition: attachment; filename*0*=utf-8',
      "''",
      '%41',
      'From: ',
      'To: ',
      '<a@b.example>',
      '"',
      '(',
      ')',
    ],
    ...[
      'Subject: =?utf-8?b?w7w=?=',
      '=?x?q?',
      '=3D',
      '=',
      'SGVsbG8=',
      '<p>',
      '</p>',
      '<a href="http://x">',
      '&amp;',
      '> ',
    ],
    ...[
      '; charset=',
      'utf-16le',
      'utf-7',
      'iso-2022-jp',
      'On 1 Jul 2003, a <b@c> wrote:',
      'Date: 1 Jul 2003 10:52:37 +0200',
    ],
  ),
  fc.string({ maxLength: 20 }),
)
const message = fc.oneof(
  fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
  fc.array(piece, { maxLength: 80 }).map((pieces) => Buffer.from(pieces.join(''))),
)

test('check 58: any bytes are read, and every attachment is found at its position', () => {
  fc.assert(
    fc.property(message, (raw) => {
      const mail = readInTime(raw)
      for (const attachment of mail.attachments) {
        const content = decodeSpan(raw, attachment.span)
        assert.deepEqual([content.length, sha256(content)], [attachment.sizeBytes, attachment.sha256])
      }
    }),
    { numRuns: 2000 },
  )
})

test('check 61: encoded words, quotes and comments yield no address', () => {
  const word = fc.stringMatching(/^[a-z]{1,8}$/)
  fc.assert(
    fc.property(word, word, (local, domain) => {
      const hidden = `${local}@${domain}.hidden`
      const encoded = `=?utf-8?b?${Buffer.from(`<${hidden}>`).toString('base64')}?=`
      for (const name of [encoded, `"${hidden}"`, `(${hidden})`, `"<${hidden}>"`, `"${encoded}"`]) {
        assert.deepEqual(parseAddressList(name, 10), [])
        const [mailbox, ...others] = parseAddressList(`${name} <real@a.example>`, 10)
        assert.equal(mailbox?.email, 'real@a.example')
        assert.equal(others.length, 0)
      }
    }),
    { numRuns: 200 },
  )
})

test('check 41: a parsed address is written in one form, in one domain', () => {
  const local = fc.oneof(fc.string({ maxLength: 20 }), fc.string({ unit: 'binary', maxLength: 10 }))
  fc.assert(
    fc.property(local, fc.domain(), (localPart, domain) => {
      const quoted = `"${localPart.replace(/["\\]/g, '\\$&')}"`
      for (const given of [`${localPart}@${domain}`, `${quoted}@${domain}`]) {
        const parsed = parseEmail(given)
        if (parsed === null) continue
        assert.equal(parsed.domain, domain.toLowerCase())
        assert.doesNotMatch(parsed.email, /[\r\n\0]/)
        assert.deepEqual(parseEmail(parsed.email), parsed)
        assert.equal(sameAddressKey(parsed.email), sameAddressKey(given))
      }
    }),
    { numRuns: 1000 },
  )
})

test('check 65: HTML with only tags and words leaves no markup in its text', () => {
  const node = fc.constantFrom(
    '<p>',
    '</p>',
    '<b>',
    '<br>',
    '<script>',
    '</script>',
    '<!-- ',
    ' -->',
    'word ',
    '<a href="javascript:x">',
    '</a>',
  )
  fc.assert(
    fc.property(fc.array(node, { maxLength: 40 }), (nodes) => {
      assert.doesNotMatch(htmlToText(nodes.join('')), /[<]|javascript/)
    }),
    { numRuns: 1000 },
  )
})
