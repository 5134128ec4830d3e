// The stored verdicts are bounded and free of bytes that PostgreSQL rejects, whatever a signature contains.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Verdicts } from './evaluation.ts'
import { toFindings } from './findings.ts'

const nothing = { reason: '', domain: null, asked: [] }
const signature = { ...nothing, domain: 'far.test', selector: 's', algorithm: 'rsa-sha256' }

function findings(dkim: object[]) {
  const verdicts = {
    spf: { ...nothing, result: 'none', identity: 'mailfrom', mechanism: `exists:${'%{i}.'.repeat(1_000)}` },
    reverseDns: { ...nothing, result: 'permerror', name: null },
    arc: { ...nothing, result: 'none' },
    dmarc: { ...nothing, result: 'none', policy: null },
    vouchedBy: null,
    dkim,
  } as unknown as Verdicts
  return toFindings(verdicts, { ip: '192.0.2.1', helo: 'far.test', from: 'a@far.test' })
}

test('a stranger’s signature values are kept within bounds, and never with a NUL', () => {
  const hostile = [`${'x'.repeat(16_000)}@far.test`, 'a\0b@far.test', 'a\r\nb@far.test']
  const { methods } = findings(
    hostile.map((identity) => ({ ...signature, result: 'fail', identity, reason: `\0${'y'.repeat(9_000)}` })),
  )
  const kept = JSON.stringify(methods)
  assert.ok(kept.length < 3_000, `${kept.length} characters`)
  assert.doesNotMatch(kept, /\\u0000|\\r|header","i"/)
})

test('values of ordinary length are kept unchanged', () => {
  const { methods } = findings([{ ...signature, result: 'pass', identity: '@far.test', reason: 'verified' }])
  const dkim = methods?.find(({ method }) => method === 'dkim')
  assert.deepEqual(
    dkim?.properties.find(([, name]) => name === 'i'),
    ['header', 'i', '@far.test'],
  )
  assert.equal(dkim?.reason, 'verified')
})
