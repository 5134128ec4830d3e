// The limits that the supervisor counts for all workers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { GroupLimits } from './group-limits.ts'

function startTwo() {
  const limits = new GroupLimits({ clock: new Clock(), log: silentLog })
  return [limits.forWorker(), limits.forWorker()] as const
}

test('one worker may hold all 1,000 SMTP connections of strangers, and the others get none more', () => {
  const [first, second] = startTwo()
  for (let n = 0; n < 1_000; n++)
    assert.equal(first.calls.admitPeer('mx', `10.${n >> 6}.${n & 63}.1`), null, `${n}`)
  assert.match(second.calls.admitPeer('mx', '192.0.2.1')!.text, /Too many connections/)
  first.calls.leavePeer('mx', '10.0.0.1')
  assert.equal(second.calls.admitPeer('mx', '192.0.2.1'), null)
  first.release()
  for (let n = 0; n < 999; n++) assert.equal(second.calls.admitPeer('mx', `10.${n >> 6}.${n & 63}.1`), null)
  assert.notEqual(second.calls.admitPeer('mx', '192.0.2.2'), null)
})

test('one worker may hold all 10,000 HTTP connections, and the others get none more', () => {
  const [first, second] = startTwo()
  for (let n = 0; n < 10_000; n++) assert.equal(first.calls.takeConnection(`10.0.${n % 10}.0`), true)
  assert.equal(second.calls.takeConnection('192.0.2.1'), false)
  first.calls.giveConnection('10.0.0.0')
  assert.equal(second.calls.takeConnection('192.0.2.1'), true)
  first.release()
  assert.equal(second.calls.takeConnection('192.0.2.1'), true)
})
