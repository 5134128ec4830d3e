// Looks up a domain's records at a DNS server of our own: each question once, each kind of fault, before the deadline.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { listDomainRecords } from './domain-records.ts'
import { lookupRecords } from './lookup-domain.ts'
import { Resolver } from './resolver.ts'

const longKey = `v=DKIM1; k=rsa; p=${'A'.repeat(3_000)}`
const server = await DnsServer.start({
  '_posthorn-challenge.life.example': { CNAME: 'challenges.elsewhere.example' },
  'challenges.elsewhere.example': { TXT: ['one', ['split ', 'in two']] },
  's._domainkey.life.example': { TXT: [longKey] },
  'life.example': { MX: [[10, 'Mx.Host.Example']] },
  'bounce.life.example': { MX: [[0, '.']], TXT: ['v=spf1 -all'] },
})
after(() => server.close())

const records = listDomainRecords({
  name: 'life.example',
  challenge: 'c',
  mailHost: 'mx.host.example',
  mtaStsMode: 'testing',
  keys: [{ selector: 's', publicRecord: 'p', state: 'active' }],
})
const resolver = new Resolver({ servers: [server.address], timeoutMs: 2_000, tries: 1 })

test('check 52: look-ups follow CNAMEs, retry truncation over TCP, and distinguish absences', async () => {
  server.fail('_dmarc.life.example', 'SERVFAIL')
  const found = await lookupRecords(resolver, records)
  const answers = [...found].map(([question, answer]) => {
    const { ttlSeconds: _, canonicalName: _alias, ...rest } = { ttlSeconds: 0, canonicalName: '', ...answer }
    return [question, rest]
  })
  assert.deepEqual(Object.fromEntries(answers), {
    'TXT _posthorn-challenge.life.example': { status: 'ok', records: ['one', 'split in two'] },
    'TXT s._domainkey.life.example': { status: 'ok', records: [longKey] },
    'MX life.example': { status: 'ok', records: [{ exchange: 'mx.host.example', preference: 10 }] },
    'MX bounce.life.example': { status: 'ok', records: [{ exchange: '', preference: 0 }] },
    'TXT bounce.life.example': { status: 'ok', records: ['v=spf1 -all'] },
    'TXT _dmarc.life.example': { status: 'temporary', reason: 'DNS answered SERVFAIL' },
    'TXT _mta-sts.life.example': { status: 'nxdomain' },
    'TXT _smtp._tls.life.example': { status: 'nxdomain' },
  })
  assert.ok(
    server.asked.some(({ name, transport }) => name.startsWith('s._domainkey') && transport === 'tcp'),
  )
})

test('check 57: each question is asked once', async () => {
  const before = server.asked.length
  await lookupRecords(resolver, [...records, ...records])
  const asked = server.asked
    .slice(before)
    .filter(({ transport }) => transport === 'udp')
    .map(({ type, name }) => `${type} ${name}`)
  assert.deepEqual(asked.sort(), [...new Set(asked)].sort())
  assert.equal(asked.length, records.length)
})

test('check 52: a question without an answer by the deadline is temporary', async () => {
  const slow = new Resolver({ servers: [server.address], timeoutMs: 60_000, tries: 1 })
  for (const { name } of records) server.fail(name, 'silent')
  const startedMs = performance.now()
  const found = await lookupRecords(slow, records, { deadlineMs: 100 })
  assert.ok(performance.now() - startedMs < 30_000)
  assert.equal(found.size, records.length)
  for (const answer of found.values()) assert.equal(answer.status, 'temporary')
  for (const { name } of records) server.fail(name, null)
})

test('a name that DNS cannot hold is not asked for', async () => {
  const name = `${`${'a'.repeat(62)}.`.repeat(3)}${'b'.repeat(45)}.example`
  const found = await lookupRecords(
    resolver,
    listDomainRecords({ name, challenge: 'c', mailHost: 'm.example', mtaStsMode: 'testing', keys: [] }),
  )
  assert.deepEqual(
    [...found.keys()].filter((question) => question.includes('challenge')),
    [],
  )
  assert.equal(found.get(`MX ${name}`)?.status, 'nxdomain')
})
