// Several nodes over one database: each start checks what they must share, and clocks may differ.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { checkNodes } from '../../src/cli/doctor/checks.ts'
import { Db } from '../../src/postgres/db.ts'
import { lockClasses } from '../../src/postgres/locks.ts'
import { isNodeLock, listNodeAddresses, listNodes } from '../../src/store/nodes.ts'
import { Api, type Submission } from '../support/api.ts'
import { ownProgram, run, runCommand } from '../support/command.ts'
import { untilLocked } from '../support/lock-waits.ts'
import { makePlace, type Place, send, startNode, untilStates, urlOf } from '../support/node.ts'
import { inherited, startPosthorn } from '../support/service.ts'
import { until } from '../support/until.ts'

/** Asserts one line on standard error, and no other output. */
function assertOneLine(answer: { status: number | null; stdout: string; stderr: string }, words: RegExp) {
  assert.equal(answer.status, 1, answer.stderr)
  assert.equal(answer.stdout, '')
  assert.match(answer.stderr, /^posthorn: [^\n]+\n$/)
  assert.match(answer.stderr, words)
}

/** A node of the place as a program, in a folder of its own. */
function anotherNode(t: TestContext, place: Place, env: Record<string, string>) {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-other-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const anyPort = {
    POSTHORN_HTTP: '127.0.0.1:0',
    POSTHORN_OPERATOR: '127.0.0.1:0',
    POSTHORN_SMTP: '127.0.0.1:0',
  }
  const settings = {
    ...inherited(),
    ...anyPort,
    POSTHORN_DATABASE_URL: urlOf(place.connection),
    POSTHORN_DATA_DIR: join(folder, 'data'),
    POSTHORN_BLOB_URL: `file:${join(place.folder, 'blobs')}`,
    POSTHORN_MANAGED_DOMAIN: 'inbox.test',
    POSTHORN_LOG_FORMAT: 'json',
  }
  const serve = (more: Record<string, string>, words: string[] = ['serve']) => {
    const given = { ...settings, ...env, ...more }
    // If the start is not refused, it runs until a signal, so it has a process of its own.
    return words[0] === 'serve' ? run(ownProgram, words, given, folder) : runCommand(words, given, folder)
  }
  return { folder, data: join(folder, 'data'), serve }
}

test('hostile 13: a node without the right secret key stops with one line in every role', async (t) => {
  const place = await makePlace(t)
  await startNode(place)
  const { folder, data, serve } = anotherNode(t, place, {})
  assertOneLine(await serve({}), /secret key of this database is missing .*copied from another node/)
  assert.throws(() => readFileSync(join(data, 'secret-key')), { code: 'ENOENT' })
  const missing = { POSTHORN_SECRET_KEY_FILE: join(folder, 'not-mounted') }
  assertOneLine(await serve(missing), /POSTHORN_SECRET_KEY_FILE=\S+not-mounted does not exist/)
  assert.throws(() => readFileSync(missing.POSTHORN_SECRET_KEY_FILE), { code: 'ENOENT' })
  const other = randomBytes(32).toString('hex')
  writeFileSync(join(folder, 'other-key'), other)
  const wrong = { POSTHORN_SECRET_KEY_FILE: join(folder, 'other-key') }
  for (const role of ['api', 'mx', 'delivery', 'webhooks', 'jobs'])
    assertOneLine(
      await serve(wrong, ['serve', '--roles', role]),
      /other-key is not the secret key of this database/,
    )
  for (const words of [['migrate'], ['org', 'list'], ['queue', 'list']])
    assertOneLine(await serve(wrong, words), /other-key is not the secret key of this database/)
  const doctor = await serve(wrong, ['doctor', '--json'])
  const { checks } = JSON.parse(doctor.stdout)
  const check = checks.find(({ name }: { name: string }) => name === 'secret key')
  assert.deepEqual([doctor.status, check.status], [1, 'failed'])
  assert.ok(![...checks.map(JSON.stringify), doctor.stderr].join('').includes(other))
})

test('a database without a check value accepts only the key that opens its sealed data', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place)
  await until('a signing key', async () => {
    const [row] = await node.foundation.db.query<{ n: number }>('select count(*) as n from dkim_key')
    return row!.n > 0
  })
  await node.foundation.db.query('update database_identity set secret_key_check = null')
  const { folder, serve } = anotherNode(t, place, {})
  assertOneLine(await serve({}, ['migrate']), /secret key of this database is missing/)
  writeFileSync(join(folder, 'other-key'), randomBytes(32))
  const wrong = { POSTHORN_SECRET_KEY_FILE: join(folder, 'other-key') }
  assertOneLine(await serve(wrong, ['migrate']), /is not the secret key of this database/)
  const right = { POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key') }
  assert.equal((await serve(right, ['migrate'])).status, 0)
  assertOneLine(await serve(wrong, ['migrate']), /is not the secret key of this database/)
})

test('hostile 13: a node with its own blobs stops with one line, and the doctor reports the same', async (t) => {
  const place = await makePlace(t)
  const first = await startNode(place)
  const { folder, serve } = anotherNode(t, place, {
    POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
  })
  mkdirSync(join(folder, 'blobs'))
  const apart = { POSTHORN_BLOB_URL: `file:${join(folder, 'blobs')}` }
  assertOneLine(await serve(apart), /blobs is not the blob store of the other nodes.*POSTHORN_BLOB_URL/)
  // The mark of an earlier start of the other node, found in a copy, is not its current mark.
  const { dataDir } = first.foundation.settings
  const blobFolder = first.foundation.blobs.location
  const number = readFileSync(join(dataDir, 'folder-id'), 'utf8')
  writeFileSync(join(folder, 'blobs', `node-${number}`), 'an earlier word')
  assertOneLine(await serve(apart), /is not the blob store of the other nodes/)
  mkdirSync(join(folder, 'data'), { recursive: true })
  const doctor = JSON.parse((await serve(apart, ['doctor', '--json'])).stdout)
  const check = doctor.checks.find(({ name }: { name: string }) => name === 'blobs')
  assert.deepEqual([check.status, /has no database-id/.test(check.detail)], ['failed', true])
  assert.match(check.mend, /POSTHORN_BLOB_URL to the folder of the other nodes/)
  const second = await startNode(place)
  assert.equal(second.foundation.blobs.location, blobFolder)
  await second.stop()
  await first.stop()
  // A single node may have any folder.
  const moved = await startNode(place, { env: apart })
  await moved.stop()
})

test('hostile 13: a node whose blobs copy a living node’s stops with one line', async (t) => {
  const place = await makePlace(t)
  const first = await startNode(place)
  const { dataDir } = first.foundation.settings
  const blobFolder = first.foundation.blobs.location
  const mark = `node-${readFileSync(join(dataDir, 'folder-id'), 'utf8')}`
  const { folder, serve } = anotherNode(t, place, {
    POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
    POSTHORN_BLOB_URL: '',
  })
  const copy = join(folder, 'data', 'blobs')
  cpSync(blobFolder, copy, { recursive: true })
  const words = readFileSync(join(copy, mark), 'utf8').split('\n')
  await until('the mark after the next', () => {
    const now = readFileSync(join(blobFolder, mark), 'utf8').split('\n')
    return !words.some((word) => now.includes(word))
  })
  assertOneLine(await serve({}), /blobs is not the blob store of the other nodes.*POSTHORN_BLOB_URL/)
  // A node that shares the folder finds the current mark at any moment.
  const second = await startNode(place)
  await second.stop()
})

test('the later of two nodes with different settings warns, and the doctor names node, setting and values', async (t) => {
  const place = await makePlace(t)
  const first = await startNode(place)
  const { settings, db } = first.foundation
  assert.equal((await checkNodes(db, settings)).status, 'ok')
  const env = {
    POSTHORN_MANAGED_DOMAIN: 'other.test',
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: 'smtp://127.0.0.1:2599',
    POSTHORN_SIGN_UP: 'invited',
    POSTHORN_DEFAULT_LIMITS: '{"inboxes":3}',
  }
  const second = await startNode(place, { env })
  assert.match(second.log(), new RegExp(`POSTHORN_DELIVERY=${settings.delivery}, this node relay`))
  assert.match(
    second.log(),
    new RegExp(`POSTHORN_MANAGED_DOMAIN=${settings.managedDomain}, this node other\\.test`),
  )
  const { status, detail, mend } = await checkNodes(db, settings)
  assert.equal(status, 'failed')
  assert.match(detail, /^node \d+ at \S+ has POSTHORN_DEFAULT_LIMITS=\{"inboxes":3\}, this node \{\}/)
  assert.match(detail, /POSTHORN_MANAGED_DOMAIN=other\.test/)
  assert.match(detail, /POSTHORN_SIGN_UP=invited, this node open/)
  assert.match(detail, /POSTHORN_DELIVERY=relay, this node /)
  assert.match(mend ?? '', /set it to the same value on all nodes/)
  await second.stop()
  assert.equal((await checkNodes(db, settings)).status, 'ok')
  await first.stop()
  const half = await startNode(place, { env: { POSTHORN_ROLES: 'api,mx' } })
  const found = await checkNodes(half.foundation.db, settings)
  assert.match(found.detail, /^no living node has the role delivery, webhooks, jobs$/)
})

test('hostile 13: two starting nodes accept no mail before both are known to share their blobs', async (t) => {
  const place = await makePlace(t)
  const other = new pg.Client(place.connection)
  await other.connect()
  place.after(() => other.end())
  const watching = new Db({ connection: place.connection, maxConnections: 1 })
  place.after(() => watching.close())
  // A port in use would end the start at once.
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  place.after(() => new Promise<void>((resolve) => void taken.close(() => resolve())))
  const { port } = taken.address() as AddressInfo
  // The other node has other blobs. It registers between this node's search and this node's own registration.
  await other.query('begin')
  await other.query('lock table node in share row exclusive mode')
  await other.query(
    `insert into node (id, mark_folder, mark_word, started_at) values (nextval('node_id'), 4711, 'a word', now())`,
  )
  await other.query(`select pg_advisory_lock($1, id::integer) from node where mark_folder = 4711`, [
    lockClasses.node,
  ])
  const starting = startNode(place, { env: { POSTHORN_SMTP: `127.0.0.1:${port}` } })
  const refused = assert.rejects(starting, /is not the blob store of the other nodes/)
  await untilLocked(watching, { saying: 'into node' })
  await other.query('commit')
  await refused
})

test('a node that had to join anew is found at its SMTP address', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['mx'] })
  const { db } = node.foundation
  const address = `127.0.0.1:${node.smtp.port}`
  assert.deepEqual(await listNodeAddresses(db, 'smtp', null), [address])
  const numberOf = async () => (await db.query<{ id: number }>('select max(id) as id from node'))[0]!.id
  const first = await numberOf()
  await db.query(`select pg_terminate_backend(l.pid) from pg_locks l where ${isNodeLock} and l.objid = $1`, [
    first,
  ])
  await until('it to have a new number', async () => (await numberOf()) > first)
  await until('it to be found', async () => (await listNodeAddresses(db, 'smtp', null)).includes(address))
  await node.stop()
})

test('the owner of a copied data folder is shown how to make it a new one', async (t) => {
  const place = await makePlace(t)
  const first = await startNode(place)
  const { data, serve } = anotherNode(t, place, {
    POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
  })
  mkdirSync(data)
  writeFileSync(join(data, 'folder-id'), readFileSync(join(first.foundation.settings.dataDir, 'folder-id')))
  assertOneLine(await serve({}), /if this folder is a copy of another node's, delete its folder-id/)
  const doctor = JSON.parse((await serve({}, ['doctor', '--json'])).stdout)
  const check = doctor.checks.find(({ name }: { name: string }) => name === 'data folder')
  assert.match(check.detail, /the folder is a copy: delete its folder-id/)
})

/** Node's own clock, one hour ahead. */
const hourLate = `const Real = Date
globalThis.Date = class extends Real {
  constructor(...given) { super(...(given.length > 0 ? given : [Real.now() + 3600000])) }
  static now() { return Real.now() + 3600000 }
}`

test('hostile 13: nodes whose clocks differ by an hour are one deployment with one time', async (t) => {
  const place = await makePlace(t)
  const preload = join(place.folder, 'hour-late.mjs')
  writeFileSync(preload, hourLate)
  const shared = {
    POSTHORN_DATABASE_URL: urlOf(place.connection),
    POSTHORN_BLOB_URL: `file:${place.folder}/blobs`,
    POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
  }
  const env = { ...shared, NODE_OPTIONS: `--import=${preload}` }
  const late = await startPosthorn(place, { roles: 'api,mx,delivery,jobs', env })
  const right = await startPosthorn(place, { roles: 'api', env: shared })
  const development = readFileSync(join(late.folder, 'development-key'), 'utf8').trim()
  const [lateApi, api] = [late, right].map(({ http }) => new Api(() => http, development)) as [Api, Api]
  const [ada, ben] = [await api.createInbox(), await lateApi.createInbox()]
  const { submission } = await send(api, ada, [ben.address])
  await untilStates(lateApi, submission.id, 'delivered')
  const arrived = await until('it to arrive', async () => (await api.exported(ben.id))[0])
  const made = [ada, ben, submission, arrived] as unknown as { createdAt: string }[]
  const times = made.map(({ createdAt }) => Date.parse(createdAt))
  assert.ok(Math.max(...times) - Math.min(...times) < 60_000, times.join(' '))
  const { organization } = await api.want<{ organization: { id: string } }>('/v1/me')
  const words = [
    'key',
    'create',
    '--org',
    organization.id,
    '--name',
    'brief',
    '--scopes',
    '*',
    '--expires-in',
    '30m',
  ]
  const { checks } = JSON.parse((await run(ownProgram, ['doctor', '--json'], late.env, place.folder)).stdout)
  const check = checks.find(({ name }: { name: string }) => name === 'database')
  assert.equal(check.status, 'warning')
  assert.match(check.detail, /this machine's clock is 3\d\d\d s ahead of the database's/)
  const { secret } = await right.cli<{ secret: string }>(words)
  assert.equal((await new Api(() => late.http, secret).call('/v1/me')).status, 200)
})

test('waiting mail for our own domains leaves within seconds of a receiving node’s start', async (t) => {
  const place = await makePlace(t)
  const first = await startNode(place, { roles: ['api', 'delivery', 'jobs'] })
  const { api } = await first.createCaller()
  const [from, to] = [await api.createInbox(), await api.createInbox()]
  const { submission } = await send(api, from, [to.address])
  await until('the way to be blocked', async () => {
    const { recipients } = await api.want<Submission>(`/v1/submissions/${submission.id}`)
    return recipients[0]!.response?.includes('no node takes mail')
  })
  await startNode(place, { roles: ['mx'] })
  await untilStates(api, submission.id, 'delivered')
})

test('a node that hangs delays no mail between another node’s inboxes', async (t) => {
  const place = await makePlace(t)
  const healthy = await startNode(place)
  // A process of its own, so that SIGSTOP does not stop this test.
  const hung = await startPosthorn(place, {
    roles: 'mx,delivery,jobs',
    env: {
      POSTHORN_DATABASE_URL: urlOf(place.connection),
      POSTHORN_BLOB_URL: `file:${place.folder}/blobs`,
      POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
      POSTHORN_MANAGED_DOMAIN: 'inbox.test',
    },
  })
  const { db } = healthy.foundation
  const { api } = await healthy.createCaller()
  const [from, to] = [await api.createInbox(), await api.createInbox()]
  await until('the queue to be let go of', async () => {
    const rows = await db.query(`select from route where key = '@local' and owner is not null`)
    return rows.length === 0
  })
  process.kill(hung.pid, 'SIGSTOP')
  try {
    for (let count = 1; count <= 3; count++) {
      const sentMs = performance.now()
      const { submission } = await send(api, from, [to.address])
      await untilStates(api, submission.id, 'delivered')
      await until('it to arrive', async () => (await api.exported(to.id)).length === count)
      const tookMs = performance.now() - sentMs
      assert.ok(tookMs < 10_000, `${tookMs} ms`)
    }
    // The hung node's claims are free, and operators see that it is lost.
    await until('the hung node to be passed over', async () => {
      const [row] = await db.query<{ living: number[] }>('select living_nodes() as living')
      const states = (await listNodes(db)).map(({ isAlive }) => isAlive)
      return row!.living.length === 1 && states.join() === 'true,false'
    })
    const addresses = await listNodeAddresses(db, 'smtp', null)
    assert.deepEqual(addresses, [`127.0.0.1:${healthy.smtp.port}`])
  } finally {
    process.kill(hung.pid, 'SIGCONT')
  }
  await until('it to join anew', async () => {
    const nodes = await listNodes(db)
    return nodes.length === 2 && nodes.every(({ isAlive }) => isAlive)
  })
})
