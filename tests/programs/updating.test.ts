// Updates node by node: the former program works next to the new one after the migration, and no acknowledged mail is lost.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { Api, type Inbox } from '../support/api.ts'
import { run } from '../support/command.ts'
import { extractFormerProgram, type FormerProgram } from '../support/former-program.ts'
import { send, untilStates, urlOf } from '../support/node.ts'
import { emptyDatabase } from '../support/postgres.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

/** Large enough for the shared blob folder instead of the database. */
const largeBytes = 300_000

interface Stage {
  connection: pg.ClientConfig
  env: Record<string, string>
}

async function makeStage(t: TestContext): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-updating-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const connection = await emptyDatabase(t)
  writeFileSync(join(folder, 'secret-key'), randomBytes(32).toString('hex'), { mode: 0o600 })
  const env = {
    POSTHORN_DATABASE_URL: urlOf(connection),
    POSTHORN_BLOB_URL: `file:${join(folder, 'blobs')}`,
    POSTHORN_SECRET_KEY_FILE: join(folder, 'secret-key'),
  }
  return { connection, env }
}

/** Sends mail to a node and through it without a pause. All of it must be acknowledged. */
class Load {
  readonly submissions: string[] = []
  readonly received: string[] = []
  readonly failures: string[] = []
  readonly #node: Posthorn
  readonly #from: Inbox
  readonly #to: Inbox
  readonly #api: Api
  readonly #running: Promise<unknown>
  #isOver = false

  constructor(node: Posthorn, { secret, from, to }: { secret: string; from: Inbox; to: Inbox }) {
    this.#node = node
    this.#from = from
    this.#to = to
    this.#api = new Api(() => node.http, secret)
    this.#running = Promise.all([this.#repeat(() => this.#send()), this.#repeat(() => this.#receive())])
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    while (!this.#isOver) await work().catch((error) => void this.failures.push(String(error)))
  }

  async #send(): Promise<void> {
    const text = this.submissions.length % 10 === 0 ? 'large '.repeat(largeBytes / 6) : 'Hello.'
    const { submission } = await send(this.#api, this.#from, [this.#to.address], { text })
    this.submissions.push(submission.id)
  }

  async #receive(): Promise<void> {
    const subject = randomUUID()
    const body = this.received.length % 10 === 0 ? 'large\r\n'.repeat(largeBytes / 7) : 'Hello.\r\n'
    const raw = Buffer.from(`From: b@far.test\r\nSubject: ${subject}\r\n\r\n${body}`)
    const { outcome, reply } = await sendMail(this.#node.smtp, {
      from: 'b@far.test',
      to: this.#to.address,
      raw,
    })
    if (outcome !== 'accepted') throw new Error(`a mail was ${outcome}: ${reply}`)
    this.received.push(subject)
  }
}

/** The work that a node has done by itself since its start. */
async function countWork({ operator }: Posthorn): Promise<Record<string, number>> {
  const text = await (await fetch(`${operator}/metrics`)).text()
  const sum = (name: string) =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)`, 'gm'))].reduce(
      (n, [, v]) => n + Number(v),
      0,
    )
  return {
    accepted: sum('posthorn_sends_accepted_total'),
    received: sum('posthorn_mails_received_total'),
    filed: sum('posthorn_messages_filed_total'),
    attempted: sum('posthorn_attempts_total'),
  }
}

/** Waits until these counters of the node have grown by five. */
async function untilWorked(node: Posthorn, names: string[]): Promise<void> {
  const before = await countWork(node)
  await until(`a node to have ${names.join(', ')}`, async () => {
    const now = await countWork(node)
    return names.every((name) => now[name]! >= before[name]! + 5)
  })
}

async function countMigrations({ connection }: Stage): Promise<number> {
  const client = new pg.Client(connection)
  await client.connect()
  const { rows } = await client.query('select count(*)::integer as n from schema_migration')
  await client.end()
  return rows[0].n
}

/** Everything that either node acknowledged has arrived exactly once. */
async function assertAllThere(api: Api, to: Inbox, loads: Load[]): Promise<void> {
  for (const id of loads.flatMap(({ submissions }) => submissions)) {
    await untilStates(api, id, 'delivered')
    const { events } = await api.want<{ events: { type: string }[] }>(`/v1/submissions/${id}/events`)
    const types = events.map(({ type }) => type).join(' ')
    assert.match(types, /^accepted queued (?:attempted deferred )*attempted delivered$/)
  }
  const wanted = loads.flatMap(({ received, submissions }) => [...received, ...submissions.map(() => 'Test')])
  const subjects = await until('all mail to be filed', async () => {
    const found = (await api.exported(to.id)).map(({ subject }) => subject)
    return found.length >= wanted.length ? found : null
  })
  assert.deepEqual(subjects.sort(), wanted.sort())
}

/** The former program no longer starts, because it does not know the new schema. */
async function assertRefused({ program }: FormerProgram, { env, folder }: Posthorn): Promise<void> {
  const { status, stdout, stderr } = await run(program, ['serve'], env, folder)
  assert.deepEqual([status, stdout], [1, ''])
  assert.match(stderr, /^posthorn: the database has migration \S+, which this program does not know: run the/)
}

test('nodes are updated one by one, since an old node works with the new one’s schema', async (t) => {
  const former = await extractFormerProgram(t)
  if (!former) return t.skip('this copy of the project has no history to take the former program from')
  t.diagnostic(`former program: ${former.commit}`)
  const stage = await makeStage(t)
  const old = await startPosthorn(t, { env: stage.env, program: former.program })
  const migrations = await countMigrations(stage)
  const { secret, api } = await createCaller(old)
  const [from, to] = [await api.createInbox(), await api.createInbox()]
  const loads = [new Load(old, { secret, from, to })]
  t.after(() => Promise.all(loads.map((load) => load.end())))
  await untilWorked(old, ['accepted', 'received', 'filed', 'attempted'])

  const updated = await startPosthorn(t, { env: stage.env })
  assert.ok((await countMigrations(stage)) > migrations)
  loads.push(new Load(updated, { secret, from, to }))
  await Promise.all([
    untilWorked(old, ['accepted', 'received', 'filed', 'attempted']),
    untilWorked(updated, ['accepted', 'received', 'filed']),
  ])
  await loads[0]!.end()
  assert.equal(await old.stop(), 0)
  await assertRefused(former, old)

  const again = await startPosthorn(t, { env: { ...stage.env, POSTHORN_DATA_DIR: old.folder } })
  loads.push(new Load(again, { secret, from, to }))
  await untilWorked(again, ['accepted', 'received', 'filed'])
  await untilWorked(updated, ['attempted'])
  for (const load of loads) await load.end()
  assert.deepEqual(
    loads.flatMap(({ failures }) => failures),
    [],
  )
  await assertAllThere(new Api(() => again.http, secret), to, loads)
})
