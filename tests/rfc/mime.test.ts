// Compares the parser on the published mails with the readings of other parsers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseMail } from '../../src/mail/read/parse.ts'
import { inCpuTime } from '../support/cpu-time.ts'
import { decodeSpan, sha256 } from '../support/decode-span.ts'
import { compare, oracleOf, publishedMails } from '../support/oracle.ts'

const mails = publishedMails()
const skip = mails.length === 0 ? 'the published suites are absent (POSTHORN_TESTDATA)' : false

/**
 * Fields in which we do not follow the oracle, each with the reason. Any other difference fails the test. If a closing
 * boundary is missing, the oracle hides the text among the attachments. Scripts often forget the boundary, so we show the
 * text too. The oracle also lets an inner multipart run past the boundaries of the outer one.
 */
const judged: Record<string, string> = {
  'mime-stalwart/malformed/002.eml text': 'a multipart without any boundary: its text is shown',
  'mime-stalwart/malformed/003.eml text': 'no closing boundary: the only text is shown',
  'mime-stalwart/malformed/004.eml text': 'no closing boundary: the only text is shown',
  'mime-stalwart/malformed/006.eml text': 'no closing boundary: the only text is shown',
  'mime-stalwart/malformed/009.eml text': 'an outer boundary ends the inner multipart (RFC 2046 5.1.2)',
  'mime-stalwart/malformed/009.eml size 1': 'an outer boundary ends the inner multipart (RFC 2046 5.1.2)',
  'mime-stalwart/malformed/011.eml text': 'an outer boundary ends the inner multipart (RFC 2046 5.1.2)',
  'mime-stalwart/malformed/011.eml size 1': 'an outer boundary ends the inner multipart (RFC 2046 5.1.2)',
  'mime-stalwart/malformed/012.eml attachments':
    'an outer boundary ends the inner multipart (RFC 2046 5.1.2)',
  'mime-stalwart/malformed/020.eml text':
    'two Content-Type fields: the first counts, the oracle takes the last',
  'mime-stalwart/malformed/021.eml text':
    'two Content-Type fields: the first counts, the oracle takes the last',
  'mime-stalwart/thirdparty/000.eml text': 'NUL becomes U+FFFD here, on purpose',
  'mime-stalwart/thirdparty/005.eml text': 'UTF-16 whose line feeds were made CRLF is broken',
  'mime-stalwart/thirdparty/007.eml from': 'a word without a domain is no address',
  'mime-stalwart/thirdparty/015.eml attachments':
    'the boundaries of the message are its own, not of the one inside',
}

test('check 58: every published mail is read within 2 s, into well-formed strings', { skip }, () => {
  for (const { name, crlf, bytes } of mails) {
    for (const raw of [crlf, bytes]) {
      const mail = inCpuTime(2_000, () => parseMail(raw), name)
      assert.equal(mail.note, null, name)
      const json = JSON.stringify(mail)
      assert.ok(json.isWellFormed() && !json.includes('\\u0000') && !json.includes('\\ud8'), name)
      for (const attachment of mail.attachments) {
        const content = decodeSpan(raw, attachment.span)
        assert.deepEqual([content.length, sha256(content)], [attachment.sizeBytes, attachment.sha256], name)
      }
    }
  }
})

/** Mails that the MX refuses (checks 1 and 22) need no reading. */
const accepted = mails.filter(({ crlf }) => !/\r(?!\n)|\0/.test(crlf.toString('latin1')))

test('check 58: our reading agrees with the published ones in 95 % of fields', { skip }, (t) => {
  let fields = 0
  const differing: string[] = []
  for (const published of accepted) {
    const oracle = oracleOf(published)
    if (oracle === null) continue
    const mail = parseMail(published.crlf)
    const ours = { ...mail, from: mail.from?.email ?? null, to: mail.to.map(({ email }) => email) }
    for (const { field, agrees, ours: mine, theirs } of compare(ours, oracle)) {
      fields++
      const name = `${published.name} ${field}`
      if (agrees) continue
      differing.push(name)
      assert.ok(name in judged, `${name}: ${JSON.stringify(mine)}, the oracle has ${JSON.stringify(theirs)}`)
    }
  }
  const percent = (100 * (fields - differing.length)) / fields
  t.diagnostic(`${fields - differing.length} of ${fields} fields agree (${percent.toFixed(1)} %)`)
  assert.ok(percent >= 95)
})
