// `posthorn demo` on a fresh folder ends well and shows everything. Each tour is a process of its own, for the signals.
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Api } from '../support/api.ts'
import { clamdMissing, makeClamd } from '../support/clamd.ts'
import { ownProgram, run } from '../support/command.ts'
import { inherited, startPosthorn } from '../support/service.ts'

function fresh(t: TestContext): { folder: string; env: Record<string, string> } {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-demo-'))
  // If root runs the service, its embedded PostgreSQL runs as another user, who must be able to enter the folder.
  chmodSync(folder, 0o755)
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 }))
  const listeners = {
    POSTHORN_HTTP: '127.0.0.1:0',
    POSTHORN_OPERATOR: '127.0.0.1:0',
    POSTHORN_SMTP: '127.0.0.1:0',
  }
  return { folder, env: { ...inherited(), ...listeners, POSTHORN_DATA_DIR: join(folder, 'data') } }
}

test('the demo runs to its end on a fresh folder and shows the story', async (t) => {
  const { folder, env } = fresh(t)
  const { status, stdout, stderr } = await run(ownProgram, ['demo'], env, folder)
  assert.equal(status, 0, `${stdout}\n${stderr}`)
  // Two inboxes, a send, the arrival, the reply with its references, the thread with both; an attachment that the built-in
  // scanner found clean; signed calls; a bounce and its consequences; numbers.
  for (const word of [
    ...[/inb_[a-f0-9]{24}/, /msg_[a-f0-9]{24}/, /thr_[a-f0-9]{24}/, /in-reply-to/i, /references/i, /202/],
    ...[/menu\.txt, 18 bytes, (?:unscanned|clean)/, /→ 200 .*\n +content +Soup\. Fish\. Cake\.\n/],
    ...[/receives message\.received/, /receives message\.bounced/, /v1,\S+, valid/],
    ...[/bounced +550 5\.1\.1/, /demo-nobody-\w+@inbox\.localhost +hard_bounce/, /→ 422/],
    ...[
      /demo-ben@inbox\.localhost +deliverable: accepted/,
      /demo-nobody-\S+ +undeliverable: mailbox_not_found/,
    ],
    ...[/accepted +3\n +delivered +2\n +bounced +1\n +received +2\n/],
  ])
    assert.match(stdout, word)
  assert.ok(new Set(stdout.match(/inb_[a-f0-9]{24}/g)).size >= 2, stdout)
})

test('with clamd the demo returns the attachment', { skip: clamdMissing }, async (t) => {
  const { folder, env } = fresh(t)
  const clamd = makeClamd(t)
  await clamd.start()
  const { status, stdout, stderr } = await run(
    ownProgram,
    ['demo'],
    { ...env, POSTHORN_CLAMD: clamd.path },
    folder,
  )
  assert.equal(status, 0, `${stdout}\n${stderr}`)
  assert.match(stdout, /→ 200 .*\n +content +Soup\. Fish\. Cake\.\n/)
})

test('a demo with --json prints one document without secrets, and changes only the service’s mail', async (t) => {
  const posthorn = await startPosthorn(t)
  const env = { ...posthorn.env, POSTHORN_HTTP: posthorn.http.replace('http://', '') }
  const { status, stdout, stderr } = await run(ownProgram, ['demo', '--json'], env, tmpdir())
  assert.equal(status, 0, `${stdout}\n${stderr}`)
  assert.equal(JSON.parse(stdout).service.origin, 'running')
  assert.doesNotMatch(stdout, /whsec_[A-Za-z0-9+/]{10}/)
  const key = readFileSync(join(posthorn.folder, 'development-key'), 'utf8').trim()
  const api = new Api(() => posthorn.http, key)
  assert.deepEqual((await api.want<{ webhooks: unknown[] }>('/v1/webhooks')).webhooks, [])
  assert.deepEqual((await api.want<{ suppressions: unknown[] }>('/v1/suppressions')).suppressions, [])
})

test('a refused step is reported in one line, with the next step', async (t) => {
  const posthorn = await startPosthorn(t, { env: { POSTHORN_DEFAULT_LIMITS: '{"webhookEndpoints":0}' } })
  const env = { ...posthorn.env, POSTHORN_HTTP: posthorn.http.replace('http://', '') }
  const { status, stdout, stderr } = await run(ownProgram, ['demo', '--json'], env, tmpdir())
  assert.equal(status, 1)
  assert.equal(stdout, '')
  assert.match(
    stderr,
    /^posthorn: the tour ended early: POST \/v1\/webhooks .*limit_reached.*\n.*demo --fresh/,
  )
})
