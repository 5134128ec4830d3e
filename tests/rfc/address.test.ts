// Runs Dominic Sayers' is_email suite: its errors never parse, and what SMTP allows does.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseEmail } from '../../src/mail/address.ts'
import { readIsEmailCases } from '../support/is-email.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
const path = join(testdata, 'address-isemail', 'tests.xml')
assert.ok(existsSync(path) || !process.env['CI'], `${path} is absent`)

const all = existsSync(path) ? readIsEmailCases(readFileSync(path, 'utf8')) : []
const skip = all.length === 0 ? 'the is_email suite is absent (POSTHORN_TESTDATA)' : false

test('check 41: addresses are judged as the is_email suite demands', { skip }, (t) => {
  const wrong: string[] = []
  for (const { id, address, isMailed, diagnosis } of all) {
    if ((parseEmail(address) !== null) !== isMailed)
      wrong.push(`${id} ${diagnosis} ${JSON.stringify(address)}`)
  }
  t.diagnostic(`${all.length - wrong.length} of ${all.length} addresses judged as the suite does`)
  assert.deepEqual(wrong, [])
})
