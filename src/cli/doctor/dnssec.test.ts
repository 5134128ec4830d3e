// The doctor's verdicts on DNSSEC: resolvers that validate, that do not, and that only claim to.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DnsServer } from '../../../tests/support/dns-server.ts'
import { Resolver } from '../../dns/resolver.ts'
import { checkDnssec } from './dnssec.ts'

const names = { signed: 'signed.test', broken: 'broken.test' }
const direct = { delivery: 'direct', isDevelopment: false } as const

test('check 35: the doctor says whether the resolver proves signed names and refuses broken ones', async (t) => {
  const server = await DnsServer.start({
    'signed.test': { MX: [[10, 'mx.signed.test']] },
    'broken.test': { A: ['192.0.2.1'] },
  })
  t.after(() => server.close())
  const resolver = new Resolver({ servers: [server.address], tries: 1 })
  const verdict = async () => {
    const { status, detail } = await checkDnssec(direct, resolver, names)
    return `${status}: ${detail}`
  }
  assert.match(
    await verdict(),
    /^warning: no trusted resolver proves signed\.test: mail is sent without DANE/,
  )
  server.signed.add('signed.test')
  assert.match(await verdict(), /^failed: the resolver claims to validate, but accepts .*broken\.test/)
  server.fail('broken.test', 'SERVFAIL')
  assert.match(await verdict(), /^ok: .*DANE is used/)
  server.fail('signed.test', 'SERVFAIL')
  assert.match(await verdict(), /^warning: not tried: DNS answered SERVFAIL/)
  for (const settings of [
    { ...direct, delivery: 'relay' },
    { ...direct, isDevelopment: true },
  ] as const)
    assert.equal((await checkDnssec(settings, resolver, names)).status, 'skipped')
})
