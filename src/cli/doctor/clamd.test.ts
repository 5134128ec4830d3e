// The doctor's verdicts on clamd: absent, unreachable, careless, and well configured.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { clamdMissing, fakeClamd, makeClamd, streamed } from '../../../tests/support/clamd.ts'
import { readSettings } from '../../config/settings.ts'
import { checkClamd } from './clamd.ts'

const check = (clamd: string) => checkClamd(readSettings({ POSTHORN_CLAMD: clamd }))

async function fake(t: TestContext, answer: (content: Buffer) => string): Promise<string> {
  const { host, port } = await fakeClamd(t, (socket, received) => {
    const content = streamed(received)
    if (content) socket.end(answer(content))
  })
  return `${host}:${port}`
}

test('without clamd the check is skipped, and in development it names the built-in scanner', async () => {
  const inDevelopment = await check('')
  assert.deepEqual(
    [inDevelopment.status, /finds only the EICAR test file/.test(inDevelopment.detail)],
    ['skipped', true],
  )
  const { status, detail } = await checkClamd({ ...readSettings({}), isDevelopment: false })
  assert.deepEqual([status, detail], ['skipped', 'POSTHORN_CLAMD is unset: attachments stay unscanned'])
})

test('the check of an unreachable clamd fails', async () => {
  const { status, detail, mend } = await check('/nonexistent/clamd.ctl')
  assert.equal(status, 'failed')
  assert.match(detail, /ENOENT/)
  assert.match(mend ?? '', /POSTHORN_CLAMD/)
})

test('a clamd that passes files it did not scan gets a warning with the lines to write', async (t) => {
  const { status, mend } = await check(await fake(t, () => 'stream: OK\0'))
  assert.deepEqual(
    [status, mend],
    ['warning', 'add AlertEncrypted yes and AlertExceedsMax yes to clamd.conf'],
  )
  const half = await check(
    await fake(t, ({ length }) =>
      length > 1000 ? 'stream: OK\0' : 'stream: Heuristics.Encrypted.Zip FOUND\0',
    ),
  )
  assert.equal(half.mend, 'add AlertExceedsMax yes to clamd.conf')
})

test('a real clamd with both alerts passes the check', { skip: clamdMissing }, async (t) => {
  const clamd = makeClamd(t)
  await clamd.start()
  const { status, detail } = await check(clamd.path)
  assert.equal(status, 'ok', detail)
  assert.match(detail, /^ClamAV/)
})
