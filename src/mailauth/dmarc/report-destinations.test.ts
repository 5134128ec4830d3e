// Destinations of reports: which URIs are addresses, and which hosts elsewhere have agreed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { temporary, zoneLookup } from '../../../tests/support/dmarc-zone.ts'
import { findDestinations, readDestinations } from './report-destinations.ts'

const uris: [rua: string[], emails: string[]][] = [
  [['mailto:d@shop.test'], ['d@shop.test']],
  [
    ['MAILTO:D@Shop.Test!10m', 'mailto:e@shop.test!5'],
    ['D@shop.test', 'e@shop.test'],
  ],
  [['mailto:d@shop.test?subject=x'], ['d@shop.test']],
  [['mailto:d%2Be@shop.test'], ['d+e@shop.test']],
  [['mailto:d@shop.test', 'mailto:d@SHOP.test'], ['d@shop.test']],
  [['https://shop.test/in', 'mailto:', 'mailto:d', 'mailto:d%@shop.test', 'mailto:a@b.test%2Cc@d.test'], []],
  [['mailto:d@shop.test%0d%0aBcc:x@y.test', 'mailto:d@[192.0.2.1]'], []],
  [
    [1, 2, 3, 4, 5].map((n) => `mailto:d${n}@shop.test`),
    ['d1@shop.test', 'd2@shop.test', 'd3@shop.test', 'd4@shop.test'],
  ],
]

for (const [rua, emails] of uris) {
  test(`${rua.join(', ')} names ${emails.length} addresses`, () => {
    assert.deepEqual(
      readDestinations(rua).map(({ email }) => email),
      emails,
    )
  })
}

const shop = { 'shop.test': 'v=DMARC1; p=none' }
const asked = 'shop.test._report._dmarc.reader.test'

type Row = [name: string, rua: string[], txt: Record<string, string[]>, emails: string[], isIncomplete?: true]

const rows: Row[] = [
  ['the domain itself', ['mailto:d@shop.test'], {}, ['d@shop.test']],
  ['another name of the organization', ['mailto:d@mail.shop.test'], {}, ['d@mail.shop.test']],
  ['a stranger', ['mailto:d@reader.test'], {}, []],
  ['a stranger that agrees', ['mailto:d@reader.test'], { [asked]: ['v=DMARC1'] }, ['d@reader.test']],
  [
    'a stranger that agrees, with a semicolon',
    ['mailto:d@reader.test'],
    { [asked]: ['v=DMARC1;'] },
    ['d@reader.test'],
  ],
  ['a stranger of other words', ['mailto:d@reader.test'], { [asked]: ['v=spf1 -all', 'yes'] }, []],
  ['several records', ['mailto:d@reader.test'], { [asked]: ['v=DMARC1', 'v=DMARC1'] }, ['d@reader.test']],
  [
    'another address of the host',
    ['mailto:d@reader.test'],
    { [asked]: ['v=DMARC1; rua=mailto:e@reader.test'] },
    ['e@reader.test'],
  ],
  [
    'an address of another host',
    ['mailto:d@reader.test'],
    { [asked]: ['v=DMARC1; rua=mailto:e@victim.test'] },
    [],
  ],
  [
    'one of its own and one of another',
    ['mailto:d@reader.test'],
    { [asked]: ['v=DMARC1; rua=mailto:e@reader.test,mailto:e@victim.test'] },
    [],
  ],
  [
    'a URI that is no address',
    ['mailto:d@reader.test'],
    { [asked]: ['v=DMARC1; rua=https://reader.test/'] },
    [],
  ],
  [
    'no answer',
    ['mailto:d@reader.test', 'mailto:d@shop.test'],
    { [asked]: [temporary] },
    ['d@shop.test'],
    true,
  ],
  ['no answer of whose it is', ['mailto:d@reader.test'], { '_dmarc.reader.test': [temporary] }, [], true],
]

for (const [name, rua, txt, emails, isIncomplete = false] of rows) {
  test(`reports to ${name} go to ${emails.join(' and ') || 'no address'}`, async () => {
    const lookup = zoneLookup({ dmarc: shop, txt })
    assert.deepEqual(await findDestinations(lookup, 'shop.test', rua), { emails, isIncomplete })
  })
}

test('a destination whose name is too long for DNS gets no reports', async () => {
  const host = `${'a.'.repeat(114)}reader.test`
  const domain = `${'b.'.repeat(60)}shop.test`
  const found = await findDestinations(zoneLookup({ dmarc: {} }), domain, [`mailto:d@${host}`])
  assert.deepEqual(found, { emails: [], isIncomplete: false })
})
