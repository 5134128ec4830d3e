// Names of downloads: any name that a stranger gave a file becomes one harmless name, in a header of one line.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { attachmentDisposition } from './download-name.ts'

const form = /^attachment; filename="([\x20-\x7e]*)"; filename\*=UTF-8''([A-Za-z0-9!#$&+.^_`|~%-]*)$/

function read(disposition: string): { plain: string; name: string } {
  const [, plain, extended] = form.exec(disposition) ?? []
  assert.ok(plain !== undefined && extended !== undefined, disposition)
  assert.ok(!/["%\\/]/.test(plain), disposition)
  return { plain, name: decodeURIComponent(extended) }
}

const long = 'x'.repeat(4096)

const cases: [given: string, name: string, plain?: string][] = [
  ['terms.pdf', 'terms.pdf'],
  ['Größe 10 €.pdf', 'Größe 10 €.pdf', 'Gr__e 10 _.pdf'],
  ['日本語.txt', '日本語.txt', '___.txt'],
  ['😀.png', '😀.png', '_.png'],
  ["it's (a) *test*!.txt", "it's (a) _test_!.txt"],
  ['100%.txt', '100%.txt', '100_.txt'],
  ['../../etc/passwd', 'passwd'],
  ['..\\..\\windows\\win.ini', 'win.ini'],
  ['/etc/', 'attachment'],
  ['..', 'attachment'],
  ['.htaccess', 'htaccess'],
  ['a.txt. . .', 'a.txt'],
  ['a\0b.txt', 'ab.txt'],
  ['a\r\nSet-Cookie: x=1\r\n\r\n.txt', 'aSet-Cookie_ x=1.txt'],
  ['a"; filename="b.exe', 'a_; filename=_b.exe'],
  ['a\\"b', '_b'],
  ['annual\u202Efdp.exe', 'annualfdp.exe'],
  ['\u2066a\u2069\u200B\uFEFF.txt', 'a.txt'],
  ['line\u2028break.txt', 'linebreak.txt'],
  ['C:\\AUX', '_AUX'],
  ['con.txt', '_con.txt'],
  ['console.txt', 'console.txt'],
  ['a:b|c?d*e<f>g', 'a_b_c_d_e_f_g'],
  ['\uD800lone.txt', '\uFFFDlone.txt', '_lone.txt'],
  ['', 'attachment'],
  [`${long}.pdf`, `${'x'.repeat(196)}.pdf`],
  [`a.${long}`, `a.${'x'.repeat(198)}`],
  ['é'.repeat(4096), 'é'.repeat(100), '_'.repeat(100)],
]

for (const [given, name, plain] of cases)
  test(`check 63: ${JSON.stringify(given.slice(0, 40))} is saved as ${JSON.stringify(name.slice(0, 40))}`, () => {
    assert.deepEqual(read(attachmentDisposition(given)), { plain: plain ?? name, name })
  })

test('check 63: no name splits the header, leaves its folder or reverses the text’s direction', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom(
      '..',
      '/',
      '\\',
      '"',
      '\r\n',
      '\0',
      '\u202E',
      '%2e',
      "''",
      ';',
      '=?utf-8?q?=22?=',
      '\uD800',
      'con',
    ),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const { name } = read(attachmentDisposition(pieces.join('')))
      assert.ok(name.length > 0 && Buffer.byteLength(name) <= 200)
      assert.doesNotMatch(name, /[\p{Cc}\p{Bidi_Control}/\\"]|^\.|[. ]$/u)
    }),
    { numRuns: 3000 },
  )
})
