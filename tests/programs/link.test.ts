// `posthorn operator link`: next to a running service, with any listener address, and without a running service.
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { runCommand } from '../support/command.ts'
import { startPosthorn } from '../support/service.ts'

test('posthorn operator link finds the running service’s listener, and reports a missing one', async (t) => {
  const posthorn = await startPosthorn(t)
  const link = () => runCommand(['operator', 'link'], posthorn.env, tmpdir())
  const { url, expiresAt } = await posthorn.cli<{ url: string; expiresAt: string }>(['operator', 'link'])
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/#[A-Za-z0-9_-]{43}$/)
  assert.ok(url.startsWith(`${posthorn.operator}/#`))
  assert.ok(Date.parse(expiresAt) > Date.now())
  const { status, stdout } = await link()
  assert.equal(status, 0)
  assert.match(stdout, /^http:\/\/127\.0\.0\.1:\d+\/#\S+\n\nThe link opens the desk once/)
  await posthorn.stop()
  const stopped = await link()
  assert.deepEqual([stopped.status, stopped.stdout], [1, ''])
  assert.match(stopped.stderr, /posthorn: no service listens at .*start it with posthorn serve/)
})
