// Runs the loops of docs/agents.md: each answers a person once, even after a restart, and never another machine.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type TestContext, test } from 'node:test'
import { bodyOf, emptyDraft, withPreset } from '../../dashboard/src/pages/keys/key-draft.ts'
import { addKey } from '../support/agent-key.ts'
import { signInAs } from '../support/dashboard.ts'
import { makePlace, startNode } from '../support/node.ts'
import { installWheel } from '../support/python-wheel.ts'
import { installSdk } from '../support/sdk-package.ts'
import { inherited } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const page = readFileSync(resolve(import.meta.dirname, '../../docs/agents.md'), 'utf8')

/** `typescript` and `py` are the loops with a client library, `ts` and `python` those without packages. */
const loops: [language: string, file: string, program: string, needs: string[]][] = [
  ['typescript', 'loop.mts', process.execPath, []],
  ['sh', 'loop.sh', '/bin/sh', ['curl', 'jq']],
  ['ts', 'loop.mts', process.execPath, []],
  ['python', 'loop.py', 'python3', ['python3']],
  ['py', 'loop.py', 'python3', ['python3']],
]

const isMissing = (program: string) => spawnSync(program, ['--version']).error !== undefined

/** Runs the program in the folder until the returned function is called. */
function start(t: TestContext, folder: string, program: string, file: string, env: Record<string, string>) {
  const child = spawn(program, [file], {
    cwd: folder,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (said += text))
  const ended = once(child, 'close')
  const end = async () => {
    // Includes its child processes: the program leads a process group of its own.
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
    await ended
  }
  t.after(end)
  return { end, said: () => said }
}

/** A folder with the page's program in this language. */
function makeFolder(t: TestContext, language: string, file: string): string {
  const [, text] = new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)!
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-agent-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, file), text!)
  return folder
}

for (const [language, file, program, needs] of loops) {
  const missing = needs.find(isMissing)
  test(`agents: the loop in ${language} answers each person once, and no machine`, {
    skip: missing ? `${missing} is not installed` : false,
  }, async (t) => {
    const folder = makeFolder(t, language, file)
    if (language === 'typescript')
      symlinkSync(join((await installSdk(t)).folder, 'node_modules'), join(folder, 'node_modules'))
    const node = await startNode(await makePlace(t), { env: { POSTHORN_DELIVERY: 'capture' } })
    const caller = await node.createCaller()
    const inbox = await caller.api.createInbox('agent')
    const { secret } = await addKey(node, caller, {
      scopes: ['mailbox:read', 'mailbox:send'],
      inboxIds: [inbox.id as never],
      sendMode: 'reply_only',
    })
    const { host, port } = node.app.listening.http!
    const env = { ...inherited(), API: `http://${host}:${port}`, POSTHORN_KEY: secret, INBOX: inbox.id }
    if (language === 'py') Object.assign(env, { PYTHONPATH: await installWheel(t) })
    const write = async (subject: string, more = '') => {
      const raw = Buffer.from(`From: ada@far.test\r\nSubject: ${subject}\r\n${more}\r\nHello\r\n`)
      const { outcome } = await sendMail(node.smtp, { from: 'ada@far.test', to: inbox.address, raw })
      assert.equal(outcome, 'accepted')
    }
    const first = start(t, folder, program, file, env)
    const answers = async () =>
      (await caller.api.exported(inbox.id)).filter(({ direction }) => direction === 'outbound')
    const untilAnswered = async (count: number, { said }: { said(): string }) => {
      await until(`${count} answers`, async () => (await answers()).length === count).catch((error) =>
        assert.fail(`${error.message}\n${said()}`),
      )
      await until('its place to be written', async () => {
        const last = (await caller.api.exported(inbox.id)).findLast(
          ({ direction }) => direction === 'inbound',
        )
        const place = join(folder, 'after')
        return existsSync(place) && readFileSync(place, 'utf8').trim() === last!.id
      })
    }
    await write('one')
    await untilAnswered(1, first)
    await first.end()
    await write('a machine', 'Auto-Submitted: auto-replied\r\n')
    await write('two')
    // As if it had been stopped between an answer and its note.
    rmSync(join(folder, 'after'))
    await untilAnswered(2, start(t, folder, program, file, env))
    assert.deepEqual(
      (await answers()).map(({ subject }) => subject),
      ['Re: one', 'Re: two'],
    )
  })
}

test('agents: two agents with keys of the dashboard answer each other once, then stop', async (t) => {
  const node = await startNode(await makePlace(t), { env: { POSTHORN_DELIVERY: 'capture' } })
  const { api, organizationId } = await node.createCaller()
  const member = await signInAs(node, organizationId, 'member')
  const { host, port } = node.app.listening.http!
  const [one, two] = await Promise.all(
    ['one', 'two'].map(async (name) => {
      const inbox = await api.createInbox(name)
      const draft = { ...withPreset({ ...emptyDraft, name }, 'agent'), inboxes: [inbox] }
      const { status, body } = await member.ask('POST', '/app/v1/keys', bodyOf(draft))
      assert.deepEqual([status, body.key?.kind, body.key?.sendMode], [201, 'agent', 'reply_only'])
      const folder = makeFolder(t, 'ts', 'loop.mts')
      const env = {
        ...inherited(),
        API: `http://${host}:${port}`,
        POSTHORN_KEY: body.secret,
        INBOX: inbox.id,
      }
      return { inbox, folder, ...start(t, folder, process.execPath, 'loop.mts', env) }
    }),
  )
  // Each gets a mail that looks like a person's, from the other's address.
  for (const [from, to] of [
    [one!, two!],
    [two!, one!],
  ]) {
    const raw = Buffer.from(`From: ${from!.inbox.address}\r\nSubject: Hello\r\n\r\nHello\r\n`)
    const { outcome } = await sendMail(node.smtp, {
      from: 'ada@far.test',
      to: to!.inbox.address,
      raw,
    })
    assert.equal(outcome, 'accepted')
  }
  for (const { inbox, folder, said } of [one!, two!]) {
    await until('the mail and the answer of the other to be read', async () => {
      const received = (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
      const place = join(folder, 'after')
      if (received.length > 2) assert.fail(`${received.length} mails received`)
      return (
        received.length === 2 && existsSync(place) && readFileSync(place, 'utf8').trim() === received[1]!.id
      )
    }).catch((error) => assert.fail(`${error.message}\n${said()}`))
  }
  for (const { inbox } of [one!, two!]) {
    const mails = await api.exported(inbox.id)
    assert.deepEqual(
      mails.map(({ direction }) => direction).sort(),
      ['inbound', 'inbound', 'outbound'],
      'one answer each',
    )
  }
})
