// Units of mail content: the same for a number, different for each, of the requested size, with natural word frequencies.
import assert from 'node:assert/strict'
import test from 'node:test'
import { deflateSync } from 'node:zlib'
import { parseMail } from '../../src/mail/read/parse.ts'
import { type MailShape, writeContent, writeMessage } from './mail-content.ts'

const small: MailShape = { textBytes: 5_000, files: 'none' }

test('each number yields the same mail every time, and 200 numbers yield 200 texts', () => {
  assert.deepEqual(writeContent(7, small), writeContent(7, small))
  assert.equal(
    new Set(Array.from({ length: 200 }, (_, number) => writeContent(number, small).text)).size,
    200,
  )
})

test('text and HTML are together within 10 % of the requested length', () => {
  for (const textBytes of [5_000, 100_000]) {
    for (let number = 0; number < 20; number++) {
      const { text, html } = writeContent(number, { textBytes, files: 'none' })
      const share = (text.length + html.length) / textBytes
      assert.ok(share > 0.9 && share < 1.1, `${number}: ${share}`)
    }
  }
})

test('words are as frequent as in natural text: 300 make up half, and thousands occur', () => {
  const counts = new Map<string, number>()
  for (let number = 0; number < 100; number++) {
    for (const word of writeContent(number, small)
      .text.toLowerCase()
      .match(/[a-z]+/g)!)
      counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const sorted = [...counts.values()].sort((a, b) => b - a)
  const all = sorted.reduce((sum, count) => sum + count)
  const most = sorted.slice(0, 300).reduce((sum, count) => sum + count)
  assert.ok(most > all / 2, `${most} of ${all}`)
  assert.ok(counts.size > 5_000, `${counts.size}`)
})

test('one mail in ten has a file of 100 KB, which does not compress', () => {
  const files = Array.from(
    { length: 600 },
    (_, number) => writeContent(number, { ...small, files: 'some' }).file,
  )
  const some = files.filter((file) => file !== null)
  assert.ok(some.length > 45 && some.length < 75, `${some.length}`)
  const bytes = Buffer.from(some[0]!, 'base64')
  assert.equal(bytes.length, 100_000)
  assert.ok(deflateSync(bytes).length >= bytes.length)
})

test('a parser reads text, HTML and file of a written message', () => {
  const number = Array.from({ length: 100 }, (_, n) => n).find(
    (n) => writeContent(n, { ...small, files: 'some' }).file,
  )
  const content = writeContent(number!, { ...small, files: 'some' })
  const raw = writeMessage(content, ['From: a@x.example', 'To: b@x.example'])
  assert.ok(!/[^\r]\n/.test(raw))
  const mail = parseMail(Buffer.from(raw, 'latin1'))
  assert.equal(mail.subject, content.subject)
  assert.equal(mail.text?.trim(), content.text)
  assert.equal(mail.html?.trim(), content.html)
  assert.deepEqual(
    mail.attachments.map(({ filename, contentType }) => [filename, contentType]),
    [['report.pdf', 'application/pdf']],
  )
})
