// The Python client from its wheel, against the real service: the page's program, restarts, lost answers.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { run } from '../support/command.ts'
import { startCuttingRelay } from '../support/cutting-relay.ts'
import { makePlace, startNode, type TestNode } from '../support/node.ts'
import { installWheel, withoutPython } from '../support/python-wheel.ts'
import { inherited } from '../support/service.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

const root = resolve(import.meta.dirname, '../..')
const program = join(root, 'tests/support/python-client.py')
const env = { POSTHORN_DELIVERY: 'capture', POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true' }
const installed = withoutPython ? Promise.resolve('') : installWheel({ after })
const needsPython = { skip: withoutPython }

function baseOf({ app }: TestNode): string {
  return `http://${app.listening.http!.host}:${app.listening.http!.port}`
}

/** The program of a page in Python. */
function programOf(page: string): string {
  return /^```python\n([\s\S]*?)^```$/m.exec(readFileSync(join(root, page), 'utf8'))![1]!
}

async function environmentOf(secret: string): Promise<Record<string, string>> {
  return Object.assign(inherited(), { POSTHORN_KEY: secret, PYTHONPATH: await installed })
}

type Report = Record<string, unknown>

/** Starts `python-client.py`. `reports` grows as it reports. */
async function start(t: TestContext, args: string[], secret: string) {
  const child: ChildProcess = spawn('python3', [program, ...args], {
    env: await environmentOf(secret),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  let [printed, failure] = ['', '']
  child.stdout!.on('data', (text) => (printed += text))
  child.stderr!.on('data', (text) => (failure += text))
  t.after(async () => {
    if (child.exitCode === null) child.kill('SIGKILL')
    await ended
  })
  const reports = () =>
    printed
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Report)
  const untilReported = (what: string, holds: (report: Report) => boolean) =>
    until(what, () => {
      assert.ok(child.exitCode === null || child.exitCode === 0, failure)
      return reports().find(holds)
    }).catch((error) => assert.fail(`${error.message}\n${failure}`))
  return { child, ended, reports, untilReported, failure: () => failure }
}

test('sdk: the program of README runs from the wheel in an empty folder', needsPython, async (t) => {
  const text = programOf('README.md')
  assert.ok(text.trim().split('\n').length <= 10)
  assert.equal(programOf('sdk/python/README.md'), text)
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-lunch-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const node = await startNode(await makePlace(t), { env })
  const { secret } = await node.createCaller()
  writeFileSync(join(folder, 'lunch.py'), text.replace('http://127.0.0.1:8025', baseOf(node)))
  const environment = await environmentOf(secret)
  const startMs = performance.now()
  const { status, stdout, stderr } = await run('python3', ['lunch.py'], environment, folder)
  assert.deepEqual([status, stdout], [0, 'Noon is fine.\n'], stderr)
  t.diagnostic(`the program took ${Math.round(performance.now() - startMs)} ms`)
})

test(
  'sdk: streams of Python go on after a restart of the service, without a gap or a double',
  needsPython,
  async (t) => {
    const place = await makePlace(t)
    const first = await startNode(place, { env })
    const caller = await first.createCaller()
    const inbox = await caller.api.createInbox('watched')
    const base = baseOf(first)
    const { child, ended, reports, untilReported, failure } = await start(
      t,
      ['watch', base, inbox.id],
      caller.secret,
    )
    const suppress = (api: typeof caller.api, email: string) =>
      api.want('/v1/suppressions', { method: 'POST', body: { email }, status: 201 })
    // The stream begins when it is open, so the first event is repeated until one comes.
    await until('the stream to be open', async () => {
      await suppress(caller.api, `first-${Date.now()}@far.test`)
      return reports().some(({ suppressed }) => suppressed !== undefined)
    })
    child.stdin!.write('one\n')
    await untilReported('the first message', ({ received }) => received === 'one')
    await suppress(caller.api, 'last@far.test')
    await first.stop()
    // This call waits for the new service.
    child.stdin!.write('two\n')
    const second = await startNode(place, { env: Object.assign({ POSTHORN_HTTP: new URL(base).host }, env) })
    await untilReported('the call', ({ sent }) => sent === 'two')
    await suppress(second.meet(caller), 'again@far.test')
    await untilReported('the event after the restart', ({ suppressed }) => suppressed === 'again@far.test')
    await untilReported('the message after the restart', ({ received }) => received === 'two')
    child.stdin!.end()
    assert.deepEqual(await ended, [0, null], failure())
    const suppressed = reports().flatMap((one) => one['suppressed'] ?? [])
    assert.equal(new Set(suppressed).size, suppressed.length)
    assert.deepEqual(
      suppressed.filter((email) => !String(email).startsWith('first-')),
      ['last@far.test', 'again@far.test'],
    )
    const received = reports().flatMap((one) => one['received'] ?? [])
    assert.deepEqual(received, ['one', 'two'])
  },
)

test(
  'sdk: a send of Python whose answer is lost is sent once; exports, attachments and webhooks are whole',
  needsPython,
  async (t) => {
    const receiver = await startReceiver(t)
    const node = await startNode(await makePlace(t), { env })
    const { secret } = await node.createCaller()
    const relay = await startCuttingRelay(t, new URL(baseOf(node)))
    const args = ['whole', baseOf(node), relay.url, receiver.url('/python')]
    const { child, ended, reports, untilReported, failure } = await start(t, args, secret)
    await untilReported('the results', ({ replayed }) => replayed !== undefined)
    assert.deepEqual(reports()[0], {
      replayed: true,
      download: ['terms.txt', 6, 'Terms.'],
      has_subject: true,
      is_exported: true,
    })
    assert.equal(relay.cuts(), 1)
    const { raw, headers } = await until('the call', () => receiver.callsOf('/python')[0])
    child.stdin!.end(`${JSON.stringify({ body: raw.toString(), headers })}\n`)
    assert.deepEqual(await ended, [0, null], failure())
    assert.deepEqual(reports()[1], { verified: 'webhook.test' })
  },
)
