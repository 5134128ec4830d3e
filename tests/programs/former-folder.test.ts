// A data folder of the program before the newest migration starts with this program, and keeps all its data.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { Api } from '../support/api.ts'
import { extractFormerProgram } from '../support/former-program.ts'
import { send, untilStates } from '../support/node.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

test('a data folder from before the newest migration starts, and works', async (t) => {
  const former = await extractFormerProgram(t)
  if (!former) return t.skip('this copy of the project has no history to take the former program from')
  t.diagnostic(`former program: ${former.commit}`)
  const before = await startPosthorn(t, { program: former.program })
  const { api, secret } = await createCaller(before)
  const inbox = await api.createInbox()
  const key = randomUUID()
  const sent = await send(api, inbox, [inbox.address], { key, text: 'From before.' })
  await untilStates(api, sent.submission.id, 'delivered')
  const kept = await until('it to be filed', async () => {
    const messages = await api.exported(inbox.id)
    return messages.length === 2 && messages
  })
  assert.equal(await before.stop(), 0)

  const after = await startPosthorn(t, { env: before.env })
  const again = new Api(() => after.http, secret)
  assert.deepEqual(await again.exported(inbox.id), kept)
  const replay = await send(again, inbox, [inbox.address], { key, text: 'From before.' })
  assert.deepEqual([replay.submission.id, replay.replayed], [sent.submission.id, true])
  const next = await send(again, inbox, [inbox.address], { text: 'From now.' })
  await untilStates(again, next.submission.id, 'delivered')
  assert.equal(await after.stop(), 0)
})
