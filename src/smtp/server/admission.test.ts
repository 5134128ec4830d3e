// Tests of admission.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../../base/clock.ts'
import { Admission } from './admission.ts'
import { defaultLimits } from './server-options.ts'

function admission(limits: Partial<typeof defaultLimits>) {
  const clock = new Clock()
  return { clock, door: new Admission({ ...defaultLimits, ...limits }, clock) }
}

const networks: [string, string, boolean][] = [
  ['192.0.2.1', '192.0.2.2', false],
  ['2001:db8::1', '2001:db8:0:0:ffff::1', true],
  ['2001:db8:0:1::1', '2001:db8::1', false],
  ['::1', '::2', true],
  ['1::', '1:0:0:0:1:2:3:4', true],
  ['2001:DB8::1', '2001:db8::1', true],
]
for (const [one, other, same] of networks) {
  test(`check 18: ${one} and ${other} are ${same ? 'one network' : 'two networks'}`, () => {
    const { door } = admission({ maxConnectionsPerAddress: 1 })
    assert.equal(door.admit(one), null)
    assert.equal(door.admit(other)?.code, same ? 421 : undefined)
    door.leave(one)
    assert.equal(door.admit(one), null)
  })
}

test('check 18: what is refused counts towards the minute, and a new minute starts at zero', () => {
  const { clock, door } = admission({ connectionsPerMinutePerAddress: 2 })
  for (const code of [undefined, undefined, 421, 421]) {
    assert.equal(door.admit('192.0.2.1')?.code, code)
    if (code === undefined) door.leave('192.0.2.1')
  }
  clock.advance(60_000)
  assert.equal(door.admit('192.0.2.1'), null)
})

const neighbours: [string, (host: number) => string, string][] = [
  ['a /24', (host) => `192.0.2.${host}`, '192.0.3.1'],
  ['a /48', (host) => `2001:db8:1:${host.toString(16)}::1`, '2001:db8:2::1'],
]
for (const [name, addressOf, elsewhere] of neighbours) {
  test(`check 18: the hosts of ${name} together hold four times what one may, and no more`, () => {
    const { door } = admission({ maxConnectionsPerAddress: 5 })
    const hosts = Array.from({ length: 40 }, (_, i) => addressOf(i + 1))
    assert.equal(hosts.filter((address) => door.admit(address) === null).length, 20)
    assert.equal(door.admit(elsewhere), null)
    door.leave(addressOf(1))
    assert.equal(door.admit(addressOf(99)), null)
    assert.equal(door.admit(addressOf(99))?.code, 421)
  })
}
