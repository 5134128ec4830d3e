// The records that a domain must publish, and the same records as lines of a zone file.
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

/** The lines with records. */
const linesOf = (zone: string) => zone.split('\n').filter((line) => line !== '' && !line.startsWith(';'))

test('every record has its purpose, type and name', () => {
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

test('the zone fragment uses absolute names and strings of at most 255 octets', () => {
  const lines = linesOf(writeZone(domain, records))
  assert.equal(lines.length, records.length)
  assert.equal(lines[0], '_posthorn-challenge.life.example. 3600 IN TXT "posthorn-challenge=abc"')
  assert.ok(lines.includes('life.example. 3600 IN MX 10 mx.host.example.'))
  const strings = [...lines[1]!.matchAll(/"([^"]*)"/g)].map(([, string]) => string!)
  assert.deepEqual(
    strings.map(({ length }) => length),
    [255, 410 - 255],
  )
  assert.equal(strings.join(''), records[1]!.value)
  const hint = writeZone(domain, records).trimEnd().split('\n').at(-1)!
  assert.match(hint, /^; .*: mta-sts\.life\.example\. 3600 IN CNAME mx\.host\.example\.$/)
})

test('each kind of record follows its purpose, so that a pure sender can leave the MX out', () => {
  const kinds = writeZone(domain, records).split('\n\n').slice(1, -1)
  assert.deepEqual(
    kinds.map((kind) => [
      kind.split('\n')[0]!.split(':')[0],
      linesOf(kind).map((line) => line.split(' ')[0]),
    ]),
    [
      ['; to prove that life.example is yours', ['_posthorn-challenge.life.example.']],
      [
        '; to send from life.example',
        ['s1._domainkey.life.example.', 'bounce.life.example.', 'bounce.life.example.'],
      ],
      ['; to receive', ['life.example.']],
      [
        '; recommended; what you have published already under these names may stay instead',
        ['_dmarc.life.example.', '_mta-sts.life.example.', '_smtp._tls.life.example.'],
      ],
      ['; old DKIM keys', ['s0._domainkey.life.example.']],
    ],
  )
  assert.match(kinds[2]!, /^; to receive: all mail to life\.example comes here from then on; leave it out/)
})

test('quotes and backslashes are escaped, and any text survives a round trip', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 900, unit: 'grapheme-ascii' }), (value) => {
      const record = { ...records[0]!, value } satisfies DomainRecord
      const [line] = linesOf(writeZone({ name: 'x', mailHost: 'm.example' }, [record]))
      const strings = [...line!.slice(line!.indexOf('"')).matchAll(/"((?:[^"\\]|\\.)*)"/g)]
      const read = strings.map(([, string]) => string!.replaceAll(/\\(.)/g, '$1'))
      assert.equal(read.join(''), value)
      assert.ok(read.every((string) => string.length <= 255))
    }),
  )
})

test('a name that DNS cannot hold is written as a comment', () => {
  const name = `${`${'a'.repeat(62)}.`.repeat(3)}${'b'.repeat(45)}.example`
  assert.ok(fitsDns(name) && !fitsDns(`_posthorn-challenge.${name}`))
  const zone = writeZone(
    { name, mailHost: 'm.example' },
    listDomainRecords({ name, challenge: 'c', mailHost: 'm.example', mtaStsMode: 'testing', keys: [] }),
  )
  assert.match(zone, /^; too long a name for DNS: _posthorn-challenge\./m)
  assert.ok(linesOf(zone).some((line) => line.startsWith(`${name}. 3600 IN MX `)))
})

test('the policy’s id changes with the policy, and TLS reports go to the mail host', () => {
  const of = (mtaStsMode: 'testing' | 'enforce', mailHost: string) =>
    listDomainRecords({ name: 'life.example', challenge: 'c', mailHost, mtaStsMode, keys: [] })
  const ids = [of('testing', 'a.example'), of('enforce', 'a.example'), of('testing', 'b.example')].map(
    (list) => list.find(({ purpose }) => purpose === 'mta_sts')!.value,
  )
  for (const id of ids) assert.match(id, /^v=STSv1; id=[0-9a-f]{20}$/)
  assert.equal(new Set(ids).size, 3)
  assert.equal(of('testing', 'a.example').at(-1)!.value, 'v=TLSRPTv1; rua=mailto:tls-reports@a.example')
})
