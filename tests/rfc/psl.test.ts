// Tests registered names with the published suffix list and its tests: a public suffix cannot be registered.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { normalizeDomain } from '../../src/mail/domain-name.ts'

const testdata = resolve(
  import.meta.dirname,
  '../..',
  process.env['POSTHORN_TESTDATA'] ?? '../shared/testdata',
)
const folder = join(testdata, 'psl')
const skip = existsSync(folder) ? false : `${folder} is absent`
assert.ok(!skip || !process.env['CI'], `${skip}`)

function lines(file: string): string[] {
  const all = readFileSync(join(folder, file), 'utf8').split('\n')
  return all.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('//'))
}

const isTaken = (name: string) => normalizeDomain(name).status === 'ok'

test('check 56: domains are judged as the public suffix list’s tests demand', { skip }, (t) => {
  const cases = lines('tests.txt').map((line) => line.split(/\s+/) as [name: string, registrable: string])
  const wrong = cases.filter(([name, registrable]) => isTaken(name) !== (registrable !== 'null'))
  t.diagnostic(`psl/tests.txt: ${cases.length - wrong.length} of ${cases.length} as published`)
  assert.deepEqual(wrong, [])
})

test('check 56: domains obey every rule of the public suffix list', { skip }, (t) => {
  const rules = lines('public_suffix_list.dat').map((line) => line.split(/\s/)[0]!)
  const [exceptions, suffixes] = [
    rules.filter((rule) => rule.startsWith('!')),
    rules.filter((rule) => !rule.startsWith('!')),
  ]
  const refusedExceptions = exceptions.filter((rule) => !isTaken(rule.slice(1)))
  const takenSuffixes = suffixes.filter((rule) => isTaken(rule.replace('*', 'any')))
  const takenBelow = suffixes.filter((rule) => isTaken(`own.${rule.replace('*', 'any')}`)).length
  t.diagnostic(
    `psl rules: ${suffixes.length - takenSuffixes.length} of ${suffixes.length} suffixes refused, ` +
      `${exceptions.length} of ${exceptions.length} exceptions taken, names below ${takenBelow} taken`,
  )
  t.diagnostic(`in this list and not in ours, which is newer or older: ${takenSuffixes.join(' ')}`)
  assert.deepEqual(refusedExceptions, [])
  // The list changes weekly, so two copies never agree on the latest private entries.
  assert.ok(takenSuffixes.length <= suffixes.length / 200)
  assert.ok(takenSuffixes.every((rule) => rule.includes('.')))
})
