// Runs the ARC validation suite of the working group's test harness.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { lookupIn, verifyMail } from '../support/verify-mail.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
const path = join(testdata, 'arc-validation', 'arc-draft-validation-tests.yml')
assert.ok(existsSync(path) || !process.env['CI'], `${path} is absent`)

interface Scenario {
  description: string
  tests: Record<string, { message: string; cv: string }>
  'txt-records': Record<string, string> | ''
}

const scenarios = existsSync(path)
  ? parseAllDocuments(readFileSync(path, 'utf8')).map((one): Scenario => (one as { toJS(): Scenario }).toJS())
  : []
const skip = scenarios.length === 0 ? 'the ARC suite is absent (POSTHORN_TESTDATA)' : false

/** Cases whose expected result the suite leaves empty, and the RFC sentence that decides them. */
const decided: Record<string, { wanted: string; because: string }> = {
  cv_fail_i1_as_cv_fail: {
    wanted: 'fail',
    because:
      'RFC 8617 5.2: "If the Chain Validation Status of the highest instance value ARC Set is "fail", then the Chain Validation Status is "fail""',
  },
  cv_fail_i2_as2_fail: {
    wanted: 'fail',
    because: 'the same sentence of RFC 8617 5.2',
  },
  cv_fail_i2_as1_fail: {
    wanted: 'fail',
    because: 'RFC 8617 5.2: "The "cv" value for all ARC-Seal header fields MUST NOT be "fail""',
  },
}

test('RFC 8617: the published chains validate as the suite says', { skip }, async (t) => {
  const wrong: string[] = []
  let count = 0
  for (const { tests, 'txt-records': texts } of scenarios) {
    const records = Object.fromEntries(Object.entries(texts || {}).map(([name, text]) => [name, [text]]))
    for (const [name, { message, cv }] of Object.entries(tests)) {
      const mail = message.replace(/\r?\n/g, '\r\n')
      const { arc } = await verifyMail(mail, lookupIn(records))
      const published = cv.trim().toLowerCase()
      assert.equal(published === '', name in decided, `${name} wants ${published || 'nothing'}`)
      const wanted = decided[name]?.wanted ?? published
      count++
      if (arc.result !== wanted) wrong.push(`${name}: ${arc.result} (${arc.reason}), not ${wanted}`)
    }
  }
  t.diagnostic(`arc-validation: ${count - wrong.length} of ${count}, three of which the suite leaves open:`)
  for (const [name, { wanted, because }] of Object.entries(decided))
    t.diagnostic(`${name} is ${wanted}: ${because}`)
  assert.deepEqual(wrong, [])
  assert.equal(count, 171)
})
