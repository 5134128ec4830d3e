// A disk that is full or read-only: every promise is kept, and service resumes by itself once there is room.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  fstatSync,
  globSync,
  mkdtempSync,
  openSync,
  rmdirSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Acceptance, Answer, Api, Inbox, Message, Refusal } from '../support/api.ts'
import { makePlace, startNode } from '../support/node.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import { asPostgres, findCorruption, openSession } from './corruption.ts'

/** A file system of its own size, in memory. */
class SmallDisk {
  readonly folder = mkdtempSync(join(tmpdir(), 'posthorn-disk-'))
  readonly #ballast = join(this.folder, 'ballast')

  constructor(megabytes: number) {
    try {
      mount('-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'posthorn-test', this.folder)
    } catch (error) {
      rmdirSync(this.folder)
      throw error
    }
  }

  /** Lazily, so that it succeeds even if a test has left files open there. */
  unmount(): void {
    execFileSync('umount', ['--lazy', this.folder])
    rmdirSync(this.folder)
  }

  /** Leaves this many bytes free, to a page. */
  fill({ leaveBytes = 0 }: { leaveBytes?: number } = {}): void {
    const file = openSync(this.#ballast, 'a')
    try {
      for (;;) writeSync(file, Buffer.alloc(65_536))
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
      if (leaveBytes > 0) truncateSync(this.#ballast, fstatSync(file).size - leaveBytes)
    } finally {
      closeSync(file)
    }
  }

  empty(): void {
    rmSync(this.#ballast)
  }

  files(): string[] {
    return globSync('*/*', { cwd: this.folder }).sort()
  }
}

function mount(...args: string[]): void {
  execFileSync('mount', args, { stdio: 'pipe' })
}

/** A disk that is unmounted after everything else in its scope. Null, and the test skipped, if mounts are not allowed. */
function smallDisk(t: TestContext, megabytes: number): { disk: SmallDisk; scope: Scope } | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    t.skip('a disk is mounted only by root on Linux')
    return null
  }
  try {
    const disk = new SmallDisk(megabytes)
    const endings: (() => void | Promise<void>)[] = []
    t.after(async () => {
      try {
        for (const end of endings.reverse()) await end()
      } finally {
        disk.unmount()
      }
    })
    return { disk, scope: { after: (end) => void endings.push(end) } }
  } catch (error) {
    const refusal = `mount was refused: ${(error as Error).message.trim().split('\n').at(-1)}`
    assert.ok(!process.env['CI'], `in CI nothing is skipped: ${refusal}`)
    t.skip(refusal)
    return null
  }
}

/** Sends and mails of one inbox, with the answer to each. */
class Ledger {
  readonly sends = new Map<string, Answer<Acceptance & Refusal>>()
  readonly mails = new Map<string, string>()
  readonly #stage: { api: Api; inbox: Inbox; smtp: { host: string; port: number } }

  constructor(stage: { api: Api; inbox: Inbox; smtp: { host: string; port: number } }) {
    this.#stage = stage
  }

  /** Sends under this key. The send is accepted or refused as unavailable; returns which. */
  async send(name: string, bytes: number): Promise<number> {
    const { api, inbox } = this.#stage
    const content = Buffer.alloc(bytes, name).toString('base64')
    const answer = await api.call<Acceptance & Refusal>(`/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      idempotencyKey: `full-disk-${name}`,
      body: {
        to: [{ email: 'b@far.test' }],
        subject: name,
        text: 'Hello.',
        attachments: [{ filename: 'a.bin', contentType: 'application/octet-stream', content }],
      },
    })
    const { status, body, headers } = answer
    if (status !== 202) {
      assert.deepEqual([status, body.error], [503, 'unavailable'])
      assert.ok(headers.get('retry-after'))
    }
    const before = this.sends.get(name)
    // After a key was answered with a message, it always answers with this message.
    if (before?.status === 202) assert.equal(body.message?.id, before.body.message.id)
    this.sends.set(name, answer)
    return status
  }

  /** Sends a mail with this Message-ID. Returns the reply up to its enhanced code. */
  async mail(name: string, bytes: number): Promise<string> {
    const { inbox, smtp } = this.#stage
    const { outcome, reply } = await sendMail(smtp, {
      from: 'a@far.test',
      to: inbox.address,
      raw: rawMail(name, bytes),
    })
    assert.notEqual(outcome, 'lost')
    this.mails.set(name, reply.slice(0, 9))
    return reply.slice(0, 9)
  }

  /** Every acknowledged send and mail is stored once, whole, and each send was delivered. No other mail is there twice. */
  async assertKept(sink: Sink): Promise<void> {
    const { api, inbox } = this.#stage
    const taken = [...this.mails].filter(([, reply]) => reply.startsWith('250')).map(([name]) => name)
    const messages = await until('the mails to be filed', async () => {
      const found = await api.exported(inbox.id)
      return taken.every((name) => found.some((message) => isMail(message, name))) ? found : null
    })
    for (const name of this.mails.keys()) {
      const copies = messages.filter((message) => isMail(message, name))
      assert.ok(copies.length <= 1, name)
      if (!taken.includes(name)) continue
      const source = (await api.bytes(`/v1/messages/${copies[0]!.id}/source`)).toString('latin1')
      assert.ok(source.endsWith(rawMail(name, bodyBytes(source)).toString('latin1')), name)
    }
    const sent = messages.filter(({ direction }) => direction === 'outbound').map(({ id }) => id)
    assert.deepEqual(sent.sort(), [...this.sends.values()].map(({ body }) => body.message.id).sort())
    for (const { body } of this.sends.values()) {
      const { internetMessageId } = body.message
      await until('the message to leave', () => sink.copiesOf(internetMessageId).length > 0)
    }
  }
}

function rawMail(name: string, bytes: number): Buffer {
  const header = `From: a@far.test\r\nMessage-ID: <${name}@far.test>\r\n\r\n`
  return Buffer.from(`${header}${'Some line of text.\r\n'.repeat(Math.ceil(bytes / 20))}`)
}

function bodyBytes(source: string): number {
  return source.length - source.indexOf('\r\n\r\n') - 4
}

function isMail({ direction, internetMessageId }: Message, name: string): boolean {
  return direction === 'inbound' && internetMessageId === `<${name}@far.test>`
}

const small = 2_000
/** Too large for a row. */
const large = 600_000

test('check 86: a full or read-only blob store refuses only large mail, until it has room', async (t) => {
  const begun = smallDisk(t, 16)
  if (!begun) return
  const { disk, scope } = begun
  const place = await makePlace(scope)
  const sink = await startSink(scope)
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    // By default, mail is refused before a disk is full. Here it must fill up.
    POSTHORN_BLOB_URL: `file:${disk.folder}`,
    POSTHORN_DISK_RESERVE: '0',
  }
  const node = await startNode(place, { env })
  const { api } = await node.createCaller()
  const ledger = new Ledger({ api, inbox: await api.createInbox(), smtp: node.smtp })
  assert.equal(await ledger.send('before', large), 202)
  assert.equal(await ledger.mail('before', large), '250 2.0.0')

  // Only some of the bytes fit, and they must be removed again.
  disk.fill({ leaveBytes: 100_000 })
  const files = disk.files()
  for (let i = 0; i < 3; i++) {
    assert.equal(await ledger.send(`full-${i}`, large), 503)
    assert.equal(await ledger.mail(`full-${i}`, large), '452 4.3.1')
    assert.equal(await ledger.send(`small-${i}`, small), 202)
    assert.equal(await ledger.mail(`small-${i}`, small), '250 2.0.0')
  }
  assert.deepEqual(disk.files(), files)
  disk.empty()
  for (let i = 0; i < 3; i++) {
    assert.equal(await ledger.send(`full-${i}`, large), 202)
    assert.equal(await ledger.mail(`full-${i}`, large), '250 2.0.0')
  }

  mount('-o', 'remount,ro', disk.folder)
  assert.equal(await ledger.send('fixed', large), 503)
  assert.equal(await ledger.mail('fixed', large), '451 4.3.0')
  mount('-o', 'remount,rw', disk.folder)
  assert.equal(await ledger.send('fixed', large), 202)
  assert.equal(await ledger.mail('fixed', large), '250 2.0.0')
  await ledger.assertKept(sink)
})

test('check 86: a database with a full disk refuses everything, and recovers once it has room', async (t) => {
  if (process.env['POSTHORN_TEST_DATABASE_URL'])
    return t.skip('only the embedded PostgreSQL has a disk of ours')
  const begun = smallDisk(t, 256)
  if (!begun) return
  const { disk, scope } = begun
  const sink = await startSink(scope)
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_RETRY_SCHEDULE: '1s',
    POSTHORN_DATA_DIR: join(disk.folder, 'data'),
    POSTHORN_DISK_RESERVE: '0',
  }
  const posthorn = await startPosthorn(scope, { env })
  const { pid } = posthorn
  const { api } = await createCaller(posthorn)
  const ledger = new Ledger({ api, inbox: await api.createInbox(), smtp: posthorn.smtp })
  assert.equal(await ledger.send('before', small), 202)
  assert.equal(await ledger.mail('before', small), '250 2.0.0')

  // This session opens before the disk is full. A new session may find no room for its first file.
  const writer = await openSession(posthorn.database())
  scope.after(() => writer.end().catch(() => {}))
  // Log segments already exist, so only tables lack room.
  await writer.query(`${writeLog(8)}; checkpoint`)
  disk.fill()
  for (let i = 0, refused = 0; refused < 3; i++) {
    assert.ok(i < 1_000, 'there is room for ever')
    const status = await ledger.send(`tables-${i}`, 50_000)
    const reply = await ledger.mail(`tables-${i}`, 50_000)
    assert.match(reply, /^(250 2.0.0|452 4.3.1)$/)
    refused = status === 503 && reply === '452 4.3.1' ? refused + 1 : 0
  }
  const readyz = async () => await (await fetch(`${posthorn.operator}/readyz`)).json()
  assert.deepEqual(await readyz(), { status: 'unavailable', reason: 'the disk of the database is full' })

  // PostgreSQL exits if it cannot write its log, and cannot restart until there is room.
  const lock = join(env.POSTHORN_DATA_DIR, 'postgres/cluster/postmaster.pid')
  const again = () => asPostgres(posthorn.database(), writeLog(16))
  await until('PostgreSQL to end', async () => {
    disk.fill()
    await writer
      .query(writeLog(16))
      .catch(again)
      .catch(() => {}) // it must end because of this
    return !existsSync(lock)
  })
  for (let i = 0; i < 3; i++) {
    assert.equal(await ledger.send(`log-${i}`, small), 503)
    assert.equal(await ledger.mail(`log-${i}`, small), '451 4.3.0')
  }

  disk.empty()
  await until('an acceptance', async () => (await ledger.send('log-0', small)) === 202)
  assert.deepEqual([posthorn.isRunning(), posthorn.pid], [true, pid])
  for (const name of ledger.sends.keys())
    assert.equal(await ledger.send(name, name.startsWith('tables') ? 50_000 : small), 202)
  await until('mail to be taken', async () => (await ledger.mail('after', small)) === '250 2.0.0')
  await until('the node to be ready', async () => ((await readyz()) as { status: string }).status === 'ready')
  await ledger.assertKept(sink)
  assert.deepEqual(await findCorruption(posthorn.database()), [])
})

/** Makes PostgreSQL write this many megabytes of log, and to no table. */
function writeLog(megabytes: number): string {
  return `select pg_logical_emit_message(false, 'test', repeat('x', ${megabytes << 20}))`
}
