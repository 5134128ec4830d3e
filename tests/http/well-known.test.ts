// Tests /.well-known/: MTA-STS policies by host, and challenges of certificate authorities.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/base/ids.ts'
import { domainOfPolicyHost, policyIdOf, writePolicy } from '../../src/dns/mta-sts.ts'
import { insertChallenge } from '../../src/store/domains/certificates.ts'
import { proveDomain } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { getExactly } from '../support/exact-get.ts'
import { until } from '../support/until.ts'
import { setStage } from './stage.ts'

const dns = await DnsServer.start()
after(() => dns.close())
const stage = await setStage({ after }, { dnsServer: dns.address })
const { port, db, clock } = stage

const policy = (host?: string) =>
  getExactly({ port, path: '/.well-known/mta-sts.txt', ...(host !== undefined && { host }) })

test('our own domain’s host and hosts with a proved MX serve the policy, and no others', async () => {
  const { api } = await stage.createCaller()
  await proveDomain(api, dns, 'bücher.example', ['inbound'])
  await proveDomain(api, dns, 'only-sends.example', ['outbound'])
  await proveDomain(api, dns, 'owned.example', ['ownership'])
  const text = 'version: STSv1\r\nmode: testing\r\nmx: mx.test\r\nmax_age: 86400\r\n'
  for (const host of [
    'mta-sts.inbox.test',
    'MTA-STS.Inbox.Test',
    'mta-sts.inbox.test:8443',
    'mta-sts.inbox.test.',
    'mta-sts.xn--bcher-kva.example',
  ]) {
    const { status, headers, text: got } = await policy(host)
    assert.deepEqual([status, headers['content-type'], got], [200, 'text/plain; charset=utf-8', text], host)
    assert.equal(headers['x-content-type-options'], 'nosniff')
  }
  for (const host of [
    ...[
      'inbox.test',
      'mx.test',
      'mta-sts.mx.test',
      'mta-sts.other.example',
      'mta-sts.',
      'mta-sts',
      'x.mta-sts.inbox.test',
    ],
    ...[
      'mta-sts.only-sends.example',
      'mta-sts.owned.example',
      'xmta-sts.inbox.test',
      '127.0.0.1',
      '[::1]:80',
      '',
    ],
    ...['mta-sts.inbox.test..', `mta-sts.${'a.'.repeat(5_000)}test`, 'mta-sts.inbox.test:99999999'],
  ])
    assert.equal((await policy(host)).status, 404, host.slice(0, 80))
})

test('a policy neither redirects nor appears in the API', async () => {
  const { api } = await stage.createCaller()
  const document = await (await fetch(`${stage.base}/openapi.json`)).text()
  assert.doesNotMatch(document, /well-known/)
  assert.equal((await api.call('/.well-known/mta-sts.txt', { method: 'POST', body: {} })).status, 404)
})

test('a policy has its text, and an id that changes with it', () => {
  assert.equal(
    writePolicy('mx.example', 'enforce'),
    'version: STSv1\r\nmode: enforce\r\nmx: mx.example\r\nmax_age: 604800\r\n',
  )
  assert.match(policyIdOf('mx.example', 'enforce'), /^[A-Za-z0-9]{1,32}$/)
  assert.notEqual(policyIdOf('mx.example', 'enforce'), policyIdOf('mx.example', 'testing'))
  assert.deepEqual(['mta-sts.a.example', 'a.example', 'xmta-sts.a.example'].map(domainOfPolicyHost), [
    'a.example',
    null,
    null,
  ])
})

const challenge = (token: string) => getExactly({ port, path: `/.well-known/acme-challenge/${token}` })

test('a challenge is answered as published, by its token alone, until it ends', async () => {
  const token = newId('message', clock.nowMs()).replaceAll('_', '-')
  const keyAuthorization = `${token}.thumb-print_`
  await insertChallenge(db.writer, { token, keyAuthorization }, new Date(clock.nowMs() + 60_000))
  const { status, headers, text } = await challenge(token)
  assert.deepEqual(
    [status, headers['content-type'], text],
    [200, 'application/octet-stream', keyAuthorization],
  )
  for (const other of [
    '',
    'x',
    `${token}x`,
    '..%2f..%2fetc',
    '%00',
    'a'.repeat(10_000),
    `${token}/x`,
    '%E0%A4%A',
  ])
    assert.equal((await challenge(other)).status, 404, other.slice(0, 40))
  clock.advance(61_000)
  await until('its end', async () => (await challenge(token)).status === 404)
})

test('an unknown host or token is looked up ten times a second, however often it is requested', async (t) => {
  let lookups = 0
  const query = db.query.bind(db)
  db.query = ((text, values) => {
    // Other work of the service queries other domains.
    if (/from domain|from acme_challenge/.test(text) && /again/.test(JSON.stringify(values))) lookups++
    return query(text, values)
  }) as typeof db.query
  t.after(() => void (db.query = query))
  const startedMs = performance.now()
  for (let round = 0; round < 50; round++) {
    const answers = await Promise.all([policy('mta-sts.again.example'), challenge('again')])
    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 404],
    )
  }
  const tenths = Math.ceil((performance.now() - startedMs) / 100)
  assert.ok(lookups > 0)
  t.diagnostic(`100 requests in ${tenths} tenths of a second: ${lookups} look-ups`)
  assert.ok(lookups <= 2 * (tenths + 1), `${lookups}`)
})
