// Tests PgBouncer before PostgreSQL: session mode works as without it, and transaction mode is refused in one line.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import pg from 'pg'
import { Db } from '../../src/postgres/db.ts'
import { ownProgram, run, runCommand } from '../support/command.ts'
import { ExternalServer } from '../support/external-server.ts'
import { freePort } from '../support/free-port.ts'
import { send, untilStates } from '../support/node.ts'
import { createCaller, inherited, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

const path = `${process.env['PATH']}:/usr/sbin`
const found = spawnSync('pgbouncer', ['--version'], { env: { PATH: path } })
const missing = found.status === 0 ? false : 'pgbouncer is not installed'

before(() => assert.ok(!process.env['CI'] || !missing, `in CI nothing is skipped: ${missing}`))

/** Starts PgBouncer with only the required settings and returns its URL. It ends with the test. */
async function startPgbouncer(
  t: TestContext,
  { folder, owner }: ExternalServer,
  mode: 'session' | 'transaction',
): Promise<string> {
  const port = await freePort()
  const file = join(folder, `pgbouncer-${mode}.ini`)
  writeFileSync(
    file,
    `[databases]
postgres = host=${folder} user=posthorn
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 30
`,
  )
  if (owner) chownSync(file, owner.uid, owner.gid)
  const child = spawn('pgbouncer', [file], { ...owner, env: { PATH: path }, stdio: 'ignore' })
  t.after(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const url = `postgres://posthorn@127.0.0.1:${port}/postgres`
  await until('PgBouncer to answer', async () => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    const isUp = await client.connect().then(
      () => true,
      () => false,
    )
    await client.end().catch(() => {})
    return isUp
  })
  return url
}

test('a node works with its limits over PgBouncer’s session pooling, and transaction pooling is refused', {
  skip: missing,
}, async (t) => {
  const server = await ExternalServer.make(t)
  await server.start()
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-pgbouncer-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))

  const shared = await startPgbouncer(t, server, 'transaction')
  const env = { ...inherited(), POSTHORN_DATA_DIR: join(folder, 'data'), POSTHORN_DATABASE_URL: shared }
  const words = 'the pooler at POSTHORN_DATABASE_URL gives each transaction another session'
  const { status, stderr } = await run(ownProgram, ['serve'], env, folder)
  assert.equal(status, 1)
  assert.match(stderr, new RegExp(`^posthorn: ${words}: set pool_mode = session [^\\n]*\\n$`))
  const doctor = await runCommand(['doctor', '--json'], env, folder)
  const { checks } = JSON.parse(doctor.stdout)
  const check = checks.find(({ name }: { name: string }) => name === 'database')
  assert.deepEqual([doctor.status, check.status, check.detail], [1, 'failed', words])

  const own = await startPgbouncer(t, server, 'session')
  const db = new Db({ connection: { connectionString: own } })
  const [row] = await db.query<{ limits: string[] }>(
    `select array[current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('jit')] as limits`,
  )
  await db.close()
  assert.deepEqual(row!.limits, ['1min', '15s', 'off'])
  const posthorn = await startPosthorn(t, { env: { POSTHORN_DATABASE_URL: own } })
  const { api } = await createCaller(posthorn)
  const [from, to] = [await api.createInbox(), await api.createInbox()]
  const { submission } = await send(api, from, [to.address])
  await untilStates(api, submission.id, 'delivered')
  await until('it to arrive', async () => (await api.exported(to.id)).length === 1)
})
