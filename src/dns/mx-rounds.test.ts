// Finds the mail servers of long lists by several look-ups, each of which leaves out those that were asked.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DnsServer } from '../../tests/support/dns-server.ts'
import { HopFinder } from './mx.ts'
import { isPublicUnicast } from './public-address.ts'
import { Resolver } from './resolver.ts'

const names = Array.from({ length: 100 }, (_, index) => `mx${index}.many.example`)
const server = await DnsServer.start({
  'many.example': { MX: names.map((name, index) => [100 - index, name]) },
  ...Object.fromEntries(names.map((name) => [name, { A: ['8.8.6.1', '8.8.6.2', '8.8.6.3'] }])),
  'broad.example': { A: Array.from({ length: 120 }, (_, n) => `8.9.0.${n + 1}`) },
  'dangling-rest.example': {
    MX: Array.from({ length: 20 }, (_, index): [number, string] => [index, `dead${index}.example`]),
  },
})
after(() => server.close())
const resolver = new Resolver({ servers: [server.address] })
const finder = new HopFinder({ resolver, isAllowed: isPublicUnicast })

test('check 33, 52: look-ups that leave out what was passed come to each of 100 mail servers and 120 addresses', async () => {
  for (const [domain, count] of [
    ['many.example', 100],
    ['broad.example', 120],
  ] as const) {
    const passed = new Set<string>()
    const found = new Set<string>()
    for (let left = 1; left > 0; ) {
      const hops = await finder.find(domain, { asker: '', passed })
      assert.ok(hops.status === 'ok' && hops.left! < 100)
      for (const { name, addresses } of hops.hosts) {
        found.add(count === 100 ? name : addresses.join())
        if (!hops.searched!.includes(name)) for (const address of addresses) passed.add(address)
      }
      for (const name of hops.searched!) passed.add(name)
      left = hops.left!
    }
    assert.equal([...found].join().split(',').length, count)
  }
})

test('check 33: a domain whose last mail servers have no address is temporary if the first ones had', async () => {
  const passed = new Set(Array.from({ length: 18 }, (_, n) => `dead${n}.example`))
  const hops = await finder.find('dangling-rest.example', { asker: '', passed })
  assert.deepEqual([hops.status, 'left' in hops && hops.left], ['temporary', 0])
})
