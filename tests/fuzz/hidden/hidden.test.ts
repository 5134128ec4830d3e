// Text hidden from people by any mix of tricks never becomes `text`, and visible text always does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readHtmlText } from '../../../src/mail/read/html-text.ts'
import { faultsOf, hiddenMail } from '../../support/hidden-mail.ts'

const mails = 500 * Number(process.env['FUZZ_FACTOR'] ?? 1)

test(`${mails} hostile mails show no hidden word, and each visible one`, () => {
  fc.assert(
    fc.property(hiddenMail(), (mail) => {
      assert.deepEqual(faultsOf(mail, readHtmlText(mail.html).text), [], mail.html)
    }),
    { numRuns: mails },
  )
})
