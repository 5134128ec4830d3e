// When a certificate is ordered, for which names, and how often in a day at most.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NameRefusal } from '../../store/domains/certificates.ts'
import { afterEnd, afterFailure, decideOrder, followRefusals, renewalOf } from './decide-order.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const now = new Date('2026-11-21T10:00:00Z')
const at = (ms: number) => new Date(now.getTime() + ms)

function certificate(names: string[], issuedMs = -10 * dayMs, lifetimeMs = 90 * dayMs) {
  const [issuedAt, expiresAt] = [at(issuedMs), at(issuedMs + lifetimeMs)]
  return { chain: 'pem', sealedCertificateKey: Buffer.alloc(0), names, issuedAt, expiresAt }
}
const refusal = (name: string, retryMs: number): NameRefusal => ({
  name,
  reason: 'no',
  failures: 1,
  retryAt: at(retryMs).toISOString(),
})
const facts = { certificate: null, retryAt: null, refusals: [] as NameRefusal[], failures: 0 }

for (const [what, given, wanted, ordered] of [
  ['nothing is there', {}, ['a', 'b'], ['a', 'b']],
  ['nothing is wanted', {}, [], null],
  ['an order failed a moment ago', { retryAt: at(1) }, ['a'], null],
  ['its back-off is over', { retryAt: at(0) }, ['a'], ['a']],
  ['all is there', { certificate: certificate(['a', 'b']) }, ['a', 'b'], null],
  ['a name is wanted no longer', { certificate: certificate(['a', 'b']) }, ['a'], null],
  ['a name is missing', { certificate: certificate(['a']) }, ['a', 'b'], ['a', 'b']],
  ['a name was refused', { refusals: [refusal('b', 1)] }, ['a', 'b'], ['a']],
  ['all were refused', { refusals: [refusal('b', 1)] }, ['b'], null],
  [
    'the missing name was refused',
    { certificate: certificate(['a']), refusals: [refusal('b', 1)] },
    ['a', 'b'],
    null,
  ],
  [
    'it may be asked for again',
    { certificate: certificate(['a']), refusals: [refusal('b', 0)] },
    ['a', 'b'],
    ['a', 'b'],
  ],
  ['more than a third is left', { certificate: certificate(['a'], -59 * dayMs) }, ['a'], null],
  ['a third is left', { certificate: certificate(['a'], -60 * dayMs) }, ['a'], ['a']],
  ['it lives six days', { certificate: certificate(['a'], -4 * dayMs, 6 * dayMs) }, ['a'], ['a']],
  ['two orders failed', { failures: 2 }, ['a', 'b'], ['a', 'b']],
  ['three orders failed', { failures: 3 }, ['a', 'b'], ['a']],
  ['they failed for a new name', { certificate: certificate(['a']), failures: 3 }, ['a', 'b'], null],
  ['it is over', { certificate: certificate(['a', 'c'], -91 * dayMs) }, ['a'], ['a']],
] as const)
  test(`if ${what}, the order names ${ordered?.join(' and ') ?? 'nothing'}`, () => {
    const [own, ...others] = wanted
    const names = { own: own === undefined ? [] : [own], others }
    assert.deepEqual(decideOrder({ ...facts, ...given } as typeof facts, names, now), ordered)
  })

test('an authority that refuses everything is asked eight or nine times on the first day, then twice a day', (t) => {
  const days = [0, 0, 0]
  let failures = 0
  for (let time = now; time < at(3 * dayMs); time = afterFailure(failures, time)) {
    days[Math.floor((time.getTime() - now.getTime()) / dayMs)]!++
    failures++
  }
  t.diagnostic(`orders a day: ${days.join(', ')}`)
  assert.ok(days[0]! >= 7 && days[0]! <= 9 && days[1]! <= 3 && days[2]! <= 3, days.join())
})

test('new names cost at most four certificates a day', () => {
  assert.equal(afterEnd(now).getTime() - now.getTime(), 6 * hourMs)
})

test('a refused name is retried ever more rarely, and forgotten once the certificate has it', () => {
  const of = (list: NameRefusal[]) => list.map(({ name, failures }) => `${name} ${failures}`)
  const waits = (list: NameRefusal[]) =>
    Math.round((new Date(list[0]!.retryAt).getTime() - now.getTime()) / hourMs / 6)
  const once = followRefusals([], ['a', 'b'], [{ name: 'b', reason: 'no' }], now)
  const twice = followRefusals(once, ['a', 'b'], [{ name: 'b', reason: 'no' }], now)
  const often = followRefusals(twice, ['a', 'b'], [{ name: 'b', reason: 'no' }], now)
  assert.deepEqual([of(once), of(twice), of(often)], [['b 1'], ['b 2'], ['b 3']])
  assert.deepEqual([waits(once), waits(twice), waits(often)], [1, 2, 4])
  assert.deepEqual(of(followRefusals(twice, ['a', 'c'], [], now)), ['b 2'])
  assert.deepEqual(of(followRefusals(twice, ['a', 'b'], [], now)), [])
})

test('a certificate is renewed after two thirds of its lifetime', () => {
  assert.equal(renewalOf(certificate(['a'], 0, 9 * dayMs)).getTime(), at(6 * dayMs).getTime())
})
