// What a domain is told to publish, and the same as lines of a zone file.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type DomainRecord, fitsDns, listDomainRecords, writeZone } from './domain-records.ts'

const domain = { name: 'life.example', mailHost: 'mx.host.example' }
const records = listDomainRecords({
  ...domain,
  challenge: 'posthorn-challenge=abc',
  mtaStsMode: 'testing',
  keys: [
    { selector: 's1', publicRecord: `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`, state: 'active' },
    { selector: 's0', publicRecord: 'v=DKIM1; k=rsa; p=old', state: 'retired' },
  ],
})

test('every record has its place', () => {
  assert.deepEqual(
    records.map(({ purpose, type, name, priority, required }) =>
      [purpose, type, name, priority, required].join(' '),
    ),
    [
      'ownership TXT _posthorn-challenge.life.example  true',
      'dkim TXT s1._domainkey.life.example  true',
      'dkim TXT s0._domainkey.life.example  false',
      'mx MX life.example 10 true',
      'return_path MX bounce.life.example 10 true',
      'spf TXT bounce.life.example  true',
      'dmarc TXT _dmarc.life.example  false',
      'mta_sts TXT _mta-sts.life.example  false',
      'tls_rpt TXT _smtp._tls.life.example  false',
    ],
  )
})

test('the zone fragment has absolute names and strings of at most 255 octets', () => {
  const lines = writeZone(domain, records).trimEnd().split('\n')
  assert.equal(lines.length, 1 + records.length + 1)
  assert.equal(lines[1], '_posthorn-challenge.life.example. 3600 IN TXT "posthorn-challenge=abc"')
  assert.equal(lines[4], 'life.example. 3600 IN MX 10 mx.host.example.')
  const strings = [...lines[2]!.matchAll(/"([^"]*)"/g)].map(([, string]) => string!)
  assert.deepEqual(
    strings.map(({ length }) => length),
    [255, 410 - 255],
  )
  assert.equal(strings.join(''), records[1]!.value)
  assert.match(lines.at(-1)!, /^; .*: mta-sts\.life\.example\. 3600 IN CNAME mx\.host\.example\.$/)
})

test('quotes and backslashes are escaped, and any text comes back', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 900, unit: 'grapheme-ascii' }), (value) => {
      const record = { ...records[0]!, value } satisfies DomainRecord
      const line = writeZone({ name: 'x', mailHost: 'm.example' }, [record]).split('\n')[1]!
      const strings = [...line.slice(line.indexOf('"')).matchAll(/"((?:[^"\\]|\\.)*)"/g)]
      const read = strings.map(([, string]) => string!.replaceAll(/\\(.)/g, '$1'))
      assert.equal(read.join(''), value)
      assert.ok(read.every((string) => string.length <= 255))
    }),
  )
})

test('a name that DNS cannot hold is a comment', () => {
  const name = `${`${'a'.repeat(62)}.`.repeat(3)}${'b'.repeat(45)}.example`
  assert.ok(fitsDns(name) && !fitsDns(`_posthorn-challenge.${name}`))
  const lines = writeZone(
    { name, mailHost: 'm.example' },
    listDomainRecords({ name, challenge: 'c', mailHost: 'm.example', mtaStsMode: 'testing', keys: [] }),
  ).split('\n')
  assert.match(lines[1]!, /^; too long a name for DNS: _posthorn-challenge\./)
  assert.match(lines[2]!, /^a.* IN MX /)
})

test('the id of the policy changes with the policy, and reports about TLS go to the mail host', () => {
  const of = (mtaStsMode: 'testing' | 'enforce', mailHost: string) =>
    listDomainRecords({ name: 'life.example', challenge: 'c', mailHost, mtaStsMode, keys: [] })
  const ids = [of('testing', 'a.example'), of('enforce', 'a.example'), of('testing', 'b.example')].map(
    (list) => list.find(({ purpose }) => purpose === 'mta_sts')!.value,
  )
  for (const id of ids) assert.match(id, /^v=STSv1; id=[0-9a-f]{20}$/)
  assert.equal(new Set(ids).size, 3)
  assert.equal(of('testing', 'a.example').at(-1)!.value, 'v=TLSRPTv1; rua=mailto:tls-reports@a.example')
})
