// `posthorn mcp` as a program: the official client starts it and reaches the service over standard input and output.
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { PassThrough } from 'node:stream'
import { after, test } from 'node:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { meters } from '../../src/base/meters.ts'
import { ownProgram, run, runCommand } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { callTool, want } from '../support/mcp.ts'
import { until } from '../support/until.ts'
import { setStage } from './stage.ts'

const stage = await setStage({ after })
const path = process.env['PATH']!

async function start(secret: string, url = stage.base): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(
    new StdioClientTransport({
      command: ownProgram,
      args: ['mcp', '--url', url],
      env: { PATH: path, POSTHORN_KEY: secret },
      cwd: tmpdir(),
      stderr: 'ignore',
    }),
  )
  after(() => client.close())
  return client
}

test('over standard input, an agent opens an inbox, waits for a mail, reads it and answers it', async () => {
  const { secret } = await stage.createCaller()
  const client = await start(secret)
  assert.equal((await client.listTools()).tools.length, 14)
  const inbox = await want<{ id: string; address: string }>(client, 'create_inbox')
  const waiting = want<{ messages: { id: string; threadId: string }[] }>(client, 'wait_for_mail', {
    inboxId: inbox.id,
    after: '0',
  })
  // The client has several requests in progress.
  assert.match(JSON.stringify(await callTool(client, 'list_inboxes')), new RegExp(inbox.id))
  await stage.receive(inbox.address, 'From: ada@far.test\nSubject: Dinner\n\nFriday?\n')
  const [{ id, threadId }] = (await waiting).messages as [{ id: string; threadId: string }]
  const reply = { threadId, targetMessageId: id, text: 'Yes.', idempotencyKey: `reply:${id}` }
  const sent = await want<{ status: string; threadId: string }>(client, 'reply', reply)
  assert.deepEqual([sent.status, sent.threadId], ['pending', threadId])
})

test('a cancelled request ends at the service, and the connection goes on', async () => {
  const { secret, api } = await stage.createCaller()
  const client = await start(secret)
  const { id: inboxId } = await api.createInbox()
  const cancelling = new AbortController()
  const wait = { name: 'wait_for_mail', arguments: { inboxId, after: '0', wait: 45 } }
  const cancelled = client.callTool(wait, undefined, { signal: cancelling.signal })
  const waiting = async () => (await meters.waiting.get()).values[0]?.value
  await until('the wait', async () => (await waiting()) === 1 || null)
  cancelling.abort()
  await assert.rejects(cancelled)
  // The wait itself is longer than the time limit of `until`.
  await until('the end of the wait', async () => (await waiting()) === 0 || null)
  assert.match(JSON.stringify(await callTool(client, 'list_inboxes')), new RegExp(inboxId))
})

test('a wrong key and an absent service are answered, and reported on standard error', async () => {
  const ping = Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ping' })}\n`)
  for (const [url, reason] of [
    [stage.base, /unauthorized/],
    [`http://127.0.0.1:${await freePort()}`, /ECONNREFUSED/],
  ] as const) {
    const env = { PATH: path, POSTHORN_KEY: 'ph_wrong' }
    const { status, stdout, stderr } = await run(ownProgram, ['mcp', '--url', url], env, tmpdir(), ping)
    assert.equal(status, 0)
    const { id, error } = JSON.parse(stdout)
    assert.equal(id, 7)
    assert.match(error.message, reason)
    assert.match(stderr, reason)
    assert.doesNotMatch(stderr, /ph_wrong/)
  }
})

test('standard input that closes without an end ends the command', async () => {
  const stdin = new PassThrough()
  const env = { PATH: path, POSTHORN_KEY: 'ph_wrong' }
  const ended = runCommand(['mcp', '--url', stage.base], env, tmpdir(), stdin)
  stdin.destroy()
  assert.equal((await ended).status, 0)
})

test('without a key, or with a wrong URL, the command does not start', async () => {
  const keyless = await runCommand(['mcp'], { PATH: path }, tmpdir())
  assert.deepEqual([keyless.status, keyless.stdout], [1, ''])
  assert.match(keyless.stderr, /set POSTHORN_KEY/)
  const wrong = await runCommand(['mcp', '--url', 'mail'], { PATH: path }, tmpdir())
  assert.deepEqual([wrong.status, wrong.stdout], [2, ''])
})
