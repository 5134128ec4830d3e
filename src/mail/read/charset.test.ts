// Tests charsets under all names that mail uses for them, and unknown names.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeText, windows1252Bytes } from './charset.ts'
import { charsetLabels } from './charset-labels.ts'

test('check 62: TextDecoder knows each label, and decodes with it', () => {
  assert.ok(charsetLabels.size > 200)
  for (const label of charsetLabels)
    assert.equal(typeof decodeText(Buffer.from([0xe9, 0x41]), label), 'string')
})

const texts: [charset: string, bytes: string, text: string][] = [
  ['CP437', '\x81', 'ü'],
  ['utf-7', '+AOQ-', 'ä'],
  ['x-nobody-knows', '\xfc', 'ü'],
  ['ISO-2022-JP', '\x1b$B%G%#%l\x1b(B\x1b$B%/%H%j\x1b(B', 'ディレクトリ'],
  ['csISO2022JP', '\x1b(B\x1b(J\x1b$B%G\x1b(B\x1b(B!\x1b$B%#\x1b(B\x1b$@', 'デ!ィ'],
  ['_internal', '\xfc', 'ü'],
  ['hex', '\xfc', 'ü'],
  ['Base-64', '\xfc', 'ü'],
  ['constructor', '\xfc', 'ü'],
  ['', '\xfc', 'ü'],
]

for (const [charset, bytes, text] of texts)
  test(`check 62: text in ${charset} is decoded`, () =>
    assert.equal(decodeText(Buffer.from(bytes, 'latin1'), charset), text))

test('bytes read by a guessed charset are returned unchanged', () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  assert.deepEqual(windows1252Bytes(decodeText(bytes, null)), bytes)
  assert.equal(windows1252Bytes('漢'), null)
})
