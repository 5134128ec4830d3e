// The doctor's verdicts on Rspamd: absent, unreachable, locked, careless, and well configured.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fakeRspamd, makeRspamd, respond, rspamdMissing } from '../../../tests/support/rspamd.ts'
import { readSettings } from '../../config/settings.ts'
import { checkRspamd } from './rspamd.ts'

const check = (rspamd: string) => checkRspamd(readSettings({ POSTHORN_RSPAMD: rspamd }))

async function fake(t: TestContext, body: string, status?: string): Promise<string> {
  const { address } = await fakeRspamd(t, (socket) => void socket.end(respond(body, status)))
  return address.origin
}

test('without Rspamd the check is skipped', async () => {
  const { status, detail } = await check('')
  assert.deepEqual([status, detail], ['skipped', 'POSTHORN_RSPAMD is unset: received mail has no spam score'])
})

test('the check of an unreachable Rspamd fails, and shows no password', async () => {
  const found = await check('http://:open%20sesame@127.0.0.1:1')
  assert.equal(found.status, 'failed')
  assert.match(found.detail, /ECONNREFUSED/)
  assert.match(found.mend ?? '', /POSTHORN_RSPAMD/)
  assert.doesNotMatch(JSON.stringify(found), /sesame/)
})

test('the check fails if the controller’s password is missing', async (t) => {
  const { status, detail, mend } = await check(await fake(t, '{"error":"Unauthorized"}', '403 Forbidden'))
  assert.deepEqual([status, detail], ['failed', 'check failed: HTTP status 403'])
  assert.match(mend ?? '', /password/)
})

test('an Rspamd that lets the test mail pass gets a warning', async (t) => {
  const { status, detail } = await check(await fake(t, '{"score":0,"action":"no action"}'))
  assert.deepEqual(
    [status, detail],
    ['warning', 'fake/1 answers, but its action for the test mail GTUBE is "no action"'],
  )
})

test('a real Rspamd passes the check', { skip: rspamdMissing }, async (t) => {
  const rspamd = await makeRspamd(t)
  await rspamd.start()
  assert.deepEqual(await check(rspamd.address.origin), {
    name: 'Rspamd',
    status: 'ok',
    detail: 'rspamd/3.4 answers',
    mend: null,
  })
})
