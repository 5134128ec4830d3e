// The check of the blob store, when its file system does not answer.
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
  await promise
  assert.equal(watch.fault, null)
  await watch.stop()
})
