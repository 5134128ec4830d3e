// Units of the check that a contender signs: with its own key, over the whole mail, with RSA.
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import test from 'node:test'
import { signMail } from '../../tests/support/sign-mail.ts'
import { makeSigningKey, requireSignature } from './signing.ts'

const { domain, selector, privateKey, records } = makeSigningKey('sender.example')
const mail = `From: a@${domain}\r\nSubject: words\r\n\r\nMore words.\r\n`
const signed = signMail(mail, [
  {
    domain,
    selector,
    algorithm: 'rsa-sha256',
    privateKey: createPrivateKey(privateKey),
    header: 'relaxed',
    body: 'relaxed',
    names: 'from:subject',
  },
])

test('a mail that is signed with the key passes', async () => {
  await requireSignature(signed, records)
})

const refused: [string, Buffer, typeof records, RegExp][] = [
  ['no signature', Buffer.from(mail), records, /: none$/],
  ['another body', Buffer.concat([signed, Buffer.from('And more.\r\n')]), records, /rsa-sha256 fail/],
  ['another key', signed, makeSigningKey(domain).records, /rsa-sha256 fail/],
]
for (const [name, raw, known, why] of refused) {
  test(`a mail with ${name} is refused`, async () => {
    await assert.rejects(requireSignature(raw, known), why)
  })
}
