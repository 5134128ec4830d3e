// `npm test -- --changed` runs the tests that a change can affect, and few others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { affectedBy } from '../../scripts/testing/changed.ts'
import { filesOf } from '../../scripts/testing/tiers.ts'

const files = [...filesOf('quick'), ...filesOf('long')]

const cases: { changed: string; affects: string[]; spares: string[] }[] = [
  {
    changed: 'src/mailauth/spf/macro.ts',
    affects: ['src/mailauth/spf/macro.test.ts', 'tests/rfc/spf.test.ts', 'tests/flow/sender-checks.test.ts'],
    spares: ['src/mail/address.test.ts', 'tests/wire/clamd.test.ts'],
  },
  {
    changed: 'src/store/functions/claim_due.sql',
    affects: ['tests/flow/delivery.test.ts', 'tests/http/lists.test.ts'],
    spares: ['src/base/name.test.ts', 'tests/rfc/spf.test.ts'],
  },
  {
    changed: 'src/cli/queues.ts',
    affects: ['tests/programs/cli-queues.test.ts', 'tests/faults/kills.test.ts'],
    spares: ['tests/flow/delivery.test.ts'],
  },
  {
    changed: 'dashboard/src/router.tsx',
    affects: ['tests/browser/pages.test.ts', 'tests/browser/story.test.ts'],
    spares: ['tests/flow/delivery.test.ts'],
  },
  {
    changed: 'docs/api.md',
    affects: ['tests/fences/names.test.ts', 'tests/http/guide.test.ts'],
    spares: ['tests/rfc/spf.test.ts'],
  },
]

for (const { changed, affects, spares } of cases)
  test(`fences: a change of ${changed} runs the tests that it can affect`, () => {
    const affected = affectedBy([changed], files)
    assert.deepEqual(
      affects.filter((file) => !affected.includes(file)),
      [],
    )
    assert.deepEqual(
      spares.filter((file) => affected.includes(file)),
      [],
    )
  })

test('fences: a change of package.json runs every test', () => {
  assert.deepEqual(affectedBy(['package.json'], files), files)
})
