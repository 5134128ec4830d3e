// Tests transfer encodings of bodies as tables.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeBase64, encodeText } from './body-encode.ts'

const x = (count: number) => 'x'.repeat(count)

const texts: [string, string, string, string][] = [
  ['nothing', '', '7bit', ''],
  ['bare LF', 'a\nb\n', '7bit', 'a\r\nb\r\n'],
  ['bare CR', 'a\rb', '7bit', 'a\r\nb'],
  ['all kinds of line ends', 'a\r\n\r\rb\n\r\n', '7bit', 'a\r\n\r\n\r\nb\r\n\r\n'],
  ['lines of dots are left to SMTP', '.\n..\n', '7bit', '.\r\n..\r\n'],
  ['a line of 78', x(78), '7bit', x(78)],
  ['a line of 79', x(79), 'quoted-printable', `${x(75)}=\r\n${x(4)}`],
  ['a long line that ends at 76', `${x(151)}\n`, 'quoted-printable', `${x(75)}=\r\n${x(76)}\r\n`],
  ['a few other letters', 'für\nalle Tage', 'quoted-printable', 'f=C3=BCr\r\nalle Tage'],
  ['an equals sign in it', `a=b ü ${x(20)}`, 'quoted-printable', `a=3Db =C3=BC ${x(20)}`],
  ['white space at line ends', `ü ${x(20)} \n\t\n `, 'quoted-printable', `=C3=BC ${x(20)}=20\r\n=09\r\n=20`],
  [
    'dots and From in encoded text',
    `ü${x(20)}\n.\nFrom a`,
    'quoted-printable',
    `=C3=BC${x(20)}\r\n=2E\r\n=46rom a`,
  ],
  ['From in plain text', 'From a\nFrom b', 'quoted-printable', '=46rom a\r\n=46rom b'],
  ['a line like a boundary', '--=_0123', 'quoted-printable', '--=3D_0123'],
  ['From where a line is wrapped', `${x(75)}From ${x(9)}`, 'quoted-printable', `${x(75)}=\r\n=46rom ${x(9)}`],
  ['controls', `a\0b\x1b${x(20)}`, 'quoted-printable', `a=00b=1B${x(20)}`],
  ['another script', '漢字', 'base64', '5ryi5a2X\r\n'],
  ['a lone surrogate', `${x(20)}\ud800`, 'quoted-printable', `${x(20)}=EF=BF=BD`],
]

for (const [what, text, transferEncoding, content] of texts) {
  test(`check 42: text with ${what} is sent as ${transferEncoding}`, () => {
    const encoded = encodeText(text)
    assert.deepEqual(
      [encoded.transferEncoding, encoded.content.toString('latin1')],
      [transferEncoding, content],
    )
  })
}

test('check 42: no quoted-printable line exceeds 76 characters, wherever it is wrapped', () => {
  for (let count = 60; count < 90; count++) {
    const encoded = encodeText(`${x(count)}ü=ü${x(count)}F. \n`.repeat(3)).content.toString('latin1')
    assert.ok(encoded.split('\r\n').every((line) => line.length <= 76))
  }
})

test('base64 has lines of 76 characters and decodes to the same bytes', () => {
  for (const sizeBytes of [0, 1, 56, 57, 58, 114, 10_000]) {
    const content = Buffer.alloc(sizeBytes, 'abc\xff', 'latin1')
    const encoded = encodeBase64(content).content.toString('latin1')
    assert.ok(Buffer.from(encoded, 'base64').equals(content))
    assert.match(encoded, /^(?:[A-Za-z0-9+/]{76}\r\n)*(?:[A-Za-z0-9+/=]{1,76}\r\n)?$/)
  }
})
