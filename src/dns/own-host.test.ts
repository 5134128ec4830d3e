// Which mail servers are this deployment itself.
import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { OwnHost } from './own-host.ts'

const published = { status: 'ok' as const, records: [{ address: '192.0.2.1', ttlSeconds: 60 }] }

function ownHost(mailHost: string | null, listening: string[]): OwnHost {
  const resolve = async (type: string) => (type === 'A' ? published : { status: 'nodata' }) as never
  return new OwnHost({ resolver: { resolve }, mailHost, port: 25, listListening: async () => listening })
}

const [machine] = Object.values(networkInterfaces()).flatMap((all) => all ?? [])

for (const [what, mailHost, listening, name, address, isOurs] of [
  ['by name', 'mx.dep.test', [], 'mx.dep.test', '198.51.100.1', true],
  ['by the address of its name', 'mx.dep.test', [], 'other.test', '192.0.2.1', true],
  ['by where a node listens', null, ['192.0.2.9:25'], 'other.test', '192.0.2.9', true],
  ['by where a node listens, IPv6', null, ['[2001:db8::9]:25'], 'other.test', '2001:db8::9', true],
  ['where a node listens at every address', null, ['0.0.0.0:25'], 'other.test', machine!.address, true],
  ['on another port', null, ['192.0.2.9:2525'], 'other.test', '192.0.2.9', false],
  ['by its name in development', null, [], 'localhost', '127.0.0.1', false],
  ['of nobody', 'mx.dep.test', ['192.0.2.9:25'], 'other.test', '198.51.100.1', false],
] as const)
  test(`check 33: a mail server ${what} is ${isOurs ? 'ours' : 'not ours'}`, async () => {
    assert.equal(await ownHost(mailHost, [...listening]).is(name, [address]), isOurs)
  })

test('a failed query for our nodes rejects, and the next call asks again', async () => {
  let asked = 0
  const listListening = async () => {
    if (++asked === 1) throw new Error('no database')
    return ['192.0.2.9:25']
  }
  const resolve = async () => ({ status: 'nodata' }) as never
  const own = new OwnHost({ resolver: { resolve }, mailHost: null, port: 25, listListening })
  await assert.rejects(own.is('other.test', ['192.0.2.9']))
  for (let look = 0; look < 3; look++) assert.equal(await own.is('other.test', ['192.0.2.9']), true)
  assert.equal(asked, 2)
})
