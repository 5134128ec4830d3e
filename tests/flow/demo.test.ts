// `posthorn demo` on a fresh folder, as a newcomer meets it: it ends well and tells the whole story.
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { inherited, run } from '../support/service.ts'

const program = process.env['POSTHORN_TEST_PROGRAM'] ?? resolve(import.meta.dirname, '../../bin/posthorn')

function fresh(t: TestContext): { folder: string; env: Record<string, string> } {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-demo-'))
  // The embedded PostgreSQL of a service run by root belongs to another user, who must be able to pass through.
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
  const { status, stdout, stderr } = await run(program, ['demo'], env, folder)
  assert.equal(status, 0, `${stdout}\n${stderr}`)
  // Two inboxes, a send, the arrival, the reply with its references, the thread with both.
  for (const word of [
    /inb_[a-f0-9]{24}/,
    /msg_[a-f0-9]{24}/,
    /thr_[a-f0-9]{24}/,
    /in-reply-to/i,
    /references/i,
    /202/,
  ])
    assert.match(stdout, word)
  assert.ok(new Set(stdout.match(/inb_[a-f0-9]{24}/g)).size >= 2, stdout)
})

test('the demo with --json is one document and ends 0', async (t) => {
  const { folder, env } = fresh(t)
  const { status, stdout, stderr } = await run(program, ['demo', '--json'], env, folder)
  assert.equal(status, 0, `${stdout}\n${stderr}`)
  assert.equal(typeof JSON.parse(stdout), 'object')
})
