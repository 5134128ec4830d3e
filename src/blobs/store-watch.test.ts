// The check of the blob store, when the store does not answer or the question fails.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../base/log.ts'
import { StoreWatch } from './store-watch.ts'

test('a node starts despite a file system that hangs, reports it, and recovers once it answers', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { promise, resolve } = Promise.withResolvers<null>()
  const watch = new StoreWatch({ blobs: { findFault: () => promise }, log: silentLog })
  const started = watch.start()
  t.mock.timers.tick(5_000)
  await started
  assert.match(watch.fault ?? '', /does not answer/)
  resolve(null)
  await new Promise(setImmediate)
  assert.equal(watch.fault, null)
  await watch.stop()
})

test('a question that fails is a fault, and ends neither the watch nor the process', async () => {
  const failing = { findFault: () => Promise.reject(new Error('a certificate that has expired')) }
  const watch = new StoreWatch({ blobs: failing, log: silentLog })
  await watch.start()
  assert.equal(watch.fault, 'a certificate that has expired')
  await watch.stop()
})
