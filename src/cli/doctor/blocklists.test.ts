// The doctor's verdicts on block lists: lists that answer correctly, and lists that do not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DnsServer } from '../../../tests/support/dns-server.ts'
import { readSettings } from '../../config/settings.ts'
import { Resolver } from '../../dns/resolver.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import { checkBlocklists } from './blocklists.ts'

test('the doctor names the block lists that do not answer as a block list', async (t) => {
  const server = await DnsServer.start({
    '2.0.0.127.good.test': { A: ['127.0.0.2'] },
    'x.mistyped.test': { A: ['127.0.0.2'] },
    '2.0.0.127.refusing.test': { A: ['127.255.255.254'] },
  })
  t.after(() => server.close())
  server.fail('2.0.0.127.down.test', 'SERVFAIL')
  const resolver = new Resolver({ servers: [server.address], timeoutMs: 1_000, tries: 1 })
  const lookup: Lookup = (type, name) => resolver.resolve(type, name)
  const lists = 'good.test,mistyped.test,tell:refusing.test,down.test'
  const checks = await checkBlocklists(readSettings({ POSTHORN_DNSBL: lists }), lookup)
  assert.deepEqual(
    checks.map(({ status }) => status),
    ['ok', 'warning', 'warning', 'warning'],
  )
  assert.match(checks[1]!.detail, /mistyped\.test lists nobody: it lacks the test entry 127\.0\.0\.2/)
  assert.deepEqual(await checkBlocklists(readSettings({}), lookup), [])
})
