// The embedded PostgreSQL: started, adopted, shared, stopped by its last user, and never on TCP.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { silentLog } from '../../src/base/log.ts'
import { chooseOwner } from '../../src/postgres/embedded/owner.ts'
import { findPostmaster } from '../../src/postgres/embedded/postmaster.ts'
import { type EmbeddedServer, useEmbedded } from '../../src/postgres/embedded/use-embedded.ts'

const linux = process.platform === 'linux'
/** Servers that the running test uses. They are released after it, whatever its result. */
const used: EmbeddedServer[] = []
const source = new URL('../../src/', import.meta.url)

/** An empty folder for one PostgreSQL. A server that still runs there at the end is killed. */
async function emptyFolder(t: TestContext): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'posthorn-test-'))
  const directory = join(parent, 'postgres')
  t.after(async () => {
    await Promise.all(used.splice(0).map((server) => server.release()))
    const left = await findPostmaster(join(directory, 'cluster')).catch(() => null)
    if (left) process.kill(left.pid, 'SIGKILL')
    await rm(parent, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  })
  return directory
}

async function use(directory: string, progress = (_: string) => {}): Promise<EmbeddedServer> {
  const server = await useEmbedded({ directory, log: silentLog, progress })
  used.push(server)
  return server
}

async function pidOf(directory: string): Promise<number | null> {
  return (await findPostmaster(join(directory, 'cluster')))?.pid ?? null
}

async function ask(server: EmbeddedServer, sql: string) {
  const client = new pg.Client(server.connection)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!(await condition())) {
    assert.ok(performance.now() < deadline, `never came: ${what}`)
    await pause(20)
  }
}

/** Starts another Node that uses the same folder. Resolves once it printed `ready` (or, with `early`, at once). */
async function otherUser(t: TestContext, directory: string, early = 'no'): Promise<ChildProcess> {
  const program = `
    import { useEmbedded } from ${JSON.stringify(new URL('postgres/embedded/use-embedded.ts', source).href)}
    import { silentLog } from ${JSON.stringify(new URL('base/log.ts', source).href)}
    const server = await useEmbedded({ directory: process.argv[1], log: silentLog })
    console.log('ready')
    process.stdin.on('end', () => server.release()).resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, directory], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  t.after(() => child.kill('SIGKILL'))
  if (early === 'no') await once(child.stdout!, 'data')
  return child
}

test('embedded: a first start makes a durable UTF-8 database, and the last release stops it', async (t) => {
  const directory = await emptyFolder(t)
  const said: string[] = []
  const server = await use(directory, (line) => said.push(line))
  assert.deepEqual(said, ['creating the PostgreSQL cluster (first start)', 'starting PostgreSQL'])
  const [row] = await ask(
    server,
    `select current_setting('fsync') fsync, current_setting('synchronous_commit') sync,
      current_setting('server_encoding') encoding, current_database() database, upper('é') upper,
      (select datlocprovider::text || datlocale from pg_database where datname = current_database()) locale`,
  )
  const want = {
    fsync: 'on',
    sync: 'on',
    encoding: 'UTF8',
    database: 'posthorn',
    upper: 'É',
    locale: 'bC.UTF-8',
  }
  assert.deepEqual({ ...row }, want)
  await server.release()
  await server.release()
  assert.equal(await pidOf(directory), null)
})

test('embedded: it never listens on TCP, and only its owner can use its socket', async (t) => {
  const directory = await emptyFolder(t)
  const server = await use(directory)
  assert.deepEqual(await ask(server, "select setting from pg_settings where name = 'listen_addresses'"), [
    { setting: '' },
  ])
  assert.equal((await stat(join(directory, 'socket'))).mode & 0o777, 0o700)
  assert.equal((await stat(join(directory, 'cluster'))).mode & 0o777, 0o700)
  if (linux) assert.deepEqual(await listeningInodes(await pidOf(directory)), [])
})

/** Inodes of the process's TCP sockets in state LISTEN. */
async function listeningInodes(pid: number | null): Promise<string[]> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  )
  const rows = tables.flatMap((table) => table.split('\n')).map((line) => line.trim().split(/\s+/))
  const listening = new Set(rows.filter(([, , , state]) => state === '0A').map((row) => `socket:[${row[9]}]`))
  const files = await readdir(`/proc/${pid}/fd`)
  const targets = await Promise.all(files.map((file) => readlink(`/proc/${pid}/fd/${file}`).catch(() => '')))
  assert.ok(targets.some((target) => target.startsWith('socket:')))
  return targets.filter((target) => listening.has(target))
}

test('embedded: a service after kill -9 adopts it, with all committed data', async (t) => {
  const directory = await emptyFolder(t)
  const other = await otherUser(t, directory)
  const first = await use(directory)
  await ask(first, 'create table kept (n int); insert into kept values (7)')
  const pid = await pidOf(directory)
  other.kill('SIGKILL')
  await once(other, 'exit')
  const second = await use(directory)
  await first.release()
  assert.equal(await pidOf(directory), pid)
  assert.deepEqual(await ask(second, 'select n from kept'), [{ n: 7 }])
  await second.release()
  assert.equal(await pidOf(directory), null)
})

test('embedded: Ctrl-C reaches the service and not PostgreSQL', async (t) => {
  const directory = await emptyFolder(t)
  const other = await otherUser(t, directory)
  const pid = await pidOf(directory)
  process.kill(-other.pid!, 'SIGINT')
  await once(other, 'exit')
  const server = await use(directory)
  assert.equal(await pidOf(directory), pid)
  await server.release()
})

test('embedded: its user restarts a postmaster killed under a busy backend', async (t) => {
  const directory = await emptyFolder(t)
  const server = await use(directory)
  await ask(server, 'create table kept (n int); insert into kept values (7)')
  const busy = ask(server, 'select count(*) from generate_series(1, 20000000) a').catch(() => 'lost')
  const before = await pidOf(directory)
  process.kill(before!, 'SIGKILL')
  const answers = () =>
    ask(server, 'select n from kept').then(
      (rows) => rows[0].n === 7,
      () => false,
    )
  await until(
    'the new PostgreSQL answers',
    async () => (await pidOf(directory)) !== before && (await answers()),
  )
  await busy
})

test('embedded: the next start recovers a postmaster killed without users', async (t) => {
  const directory = await emptyFolder(t)
  const other = await otherUser(t, directory)
  other.kill('SIGKILL')
  process.kill((await pidOf(directory))!, 'SIGKILL')
  const server = await use(directory)
  assert.deepEqual(await ask(server, 'select 1 as one'), [{ one: 1 }])
  await server.release()
})

test('embedded: with two users only the last one stops it', async (t) => {
  const directory = await emptyFolder(t)
  const other = await otherUser(t, directory)
  const pid = await pidOf(directory)
  const command = await use(directory)
  await command.release()
  assert.equal(await pidOf(directory), pid)
  other.stdin!.end()
  await once(other, 'exit')
  assert.equal(await pidOf(directory), null)
})

test('embedded: concurrent starts on an empty folder end in one server, and leaving at once stops it', async (t) => {
  const directory = await emptyFolder(t)
  const others = [await otherUser(t, directory, 'early'), await otherUser(t, directory, 'early')]
  const servers = await Promise.all([use(directory), use(directory)])
  const stamps = await Promise.all(
    servers.map((server) => ask(server, 'select pg_postmaster_start_time()::text t')),
  )
  assert.deepEqual(stamps[0], stamps[1])
  for (const other of others) other.stdin!.end()
  await Promise.all([
    ...servers.map((server) => server.release()),
    ...others.map((other) => once(other, 'exit')),
  ])
  assert.equal(await pidOf(directory), null)
  assert.deepEqual((await readdir(directory)).sort(), [
    'cluster',
    'log',
    'pg_hba.conf',
    'pg_ident.conf',
    'socket',
  ])
})

test('embedded: users that arrive while the last one leaves are served', async (t) => {
  const directory = await emptyFolder(t)
  let server = await use(directory)
  for (let round = 0; round < 5; round++) {
    const [next] = await Promise.all([use(directory), server.release()])
    assert.deepEqual(await ask(next, 'select 1 as one'), [{ one: 1 }])
    server = next
  }
  await server.release()
  assert.equal(await pidOf(directory), null)
})

test('embedded: a killed initdb leaves nothing that disturbs the next start', async (t) => {
  const directory = await emptyFolder(t)
  const other = await otherUser(t, directory, 'early')
  const drafts = () =>
    readdir(directory).then(
      (names) => names.filter((name) => name.startsWith('cluster.new')),
      () => [],
    )
  await until('initdb works', async () => (await drafts()).length > 0)
  other.kill('SIGKILL')
  await once(other, 'exit')
  assert.equal(await stat(join(directory, 'cluster')).catch(() => null), null)
  const server = await use(directory)
  assert.deepEqual(await ask(server, 'select 1 as one'), [{ one: 1 }])
  await server.release()
})

test('embedded: a cluster of another version is refused in one line that says what to do', async (t) => {
  const directory = await emptyFolder(t)
  await mkdir(directory, { recursive: true })
  const owner = await chooseOwner(directory)
  await mkdir(join(directory, 'cluster'))
  await writeFile(join(directory, 'cluster/PG_VERSION'), '17\n')
  if (owner) await chown(join(directory, 'cluster'), owner.uid, owner.gid)
  const message = /made by PostgreSQL 17, and this is PostgreSQL 18: .*new data folder$/
  await assert.rejects(use(directory), { name: 'EmbeddedError', message })
})

test('embedded: a data folder of 300 characters works', async (t) => {
  const directory = join(await emptyFolder(t), 'x'.repeat(150), 'y'.repeat(150))
  const server = await use(directory)
  assert.ok(server.connection.host.length < 90)
  assert.deepEqual(await ask(server, 'select 1 as one'), [{ one: 1 }])
  await server.release()
  assert.equal(await stat(server.connection.host).catch(() => null), null)
})

test('embedded: a lock file that names another living process is stale', async (t) => {
  const directory = await emptyFolder(t)
  await (await use(directory)).release()
  const lock = `${process.pid}\n/elsewhere\n1700000000\n5432\n`
  await writeFile(join(directory, 'cluster/postmaster.pid'), lock)
  await writeFile(join(directory, 'socket/.s.PGSQL.5432.lock'), lock)
  const server = await use(directory)
  assert.notEqual(await pidOf(directory), process.pid)
  await server.release()
})

test('embedded: an empty lock file, left by a crash, is stale', async (t) => {
  const directory = await emptyFolder(t)
  await (await use(directory)).release()
  const lock = join(directory, 'cluster/postmaster.pid')
  await writeFile(lock, '')
  await utimes(lock, 0, 0)
  const server = await use(directory)
  assert.deepEqual(await ask(server, 'select 1 as one'), [{ one: 1 }])
})

test('embedded: PostgreSQL’s own words say at once why it cannot start', async (t) => {
  const directory = await emptyFolder(t)
  await (await use(directory)).release()
  await writeFile(join(directory, 'cluster/postgresql.conf'), 'work_mem = enormous\n')
  await assert.rejects(use(directory), { name: 'EmbeddedError', message: /did not start.*errors/ })
})
