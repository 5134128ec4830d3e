// How long a node keeps mail in memory that another node files or delivers.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Clock } from '../base/clock.ts'
import { createSendCache } from './delivery.ts'
import { createRawCache } from './mx.ts'

test('a worker drops mail after a minute if other workers file or deliver it', () => {
  const clock = new Clock()
  const received = createRawCache(['mx', 'jobs'], 2, clock)!
  const accepted = createSendCache(['api', 'delivery'], 2, clock)!
  for (let mail = 0; mail < 100; mail++) {
    received.set(`raw${mail}`, Buffer.alloc(10), 10_000)
    accepted.set(`sub${mail}`, {} as never, 1_000)
    clock.advance(7_000)
  }
  assert.deepEqual([received.count, accepted.count], [9, 9])
})
