// Claims of what is read: nobody waits for them, nothing is lost or doubled by them, and what ends the process is put aside.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, constants, openSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { newUuid, type SubmissionId } from '../../src/base/ids.ts'
import { Tickets } from '../../src/base/tickets.ts'
import { UnderWay } from '../../src/base/under-way.ts'
import { fileSpooled } from '../../src/flow/receiving/file.ts'
import { readReports } from '../../src/flow/reports/read-report.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import type { MailBytes } from '../../src/mail/parse-worker.ts'
import { returnPathOf } from '../../src/mail/return-path.ts'
import type { Db } from '../../src/postgres/db.ts'
import { openStream } from '../support/event-source.ts'
import { makePlace, type Place, startNode, type TestNode, urlOf } from '../support/node.ts'
import { startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const large = Buffer.from(`Subject: Large\r\n\r\n${'x'.repeat(70).concat('\r\n').repeat(5_000)}`)
const small = (subject: string) => Buffer.from(`Subject: ${subject}\r\n\r\nHello.\r\n`)

async function receive(
  node: { smtp: { host: string; port: number } },
  to: string,
  raw: Buffer,
  from = 'a@far.test',
): Promise<void> {
  const sent = await sendMail(node.smtp, { from, to, raw })
  assert.equal(sent.outcome, 'accepted', sent.reply)
}

const blobsIn = (folder: string) =>
  (readdirSync(folder, { recursive: true }) as string[])
    .filter((name) => name.includes('/'))
    .map((name) => join(folder, name))

/** The same reader, whose threads are asked only after `letGo`; `reached` resolves once they would be. */
function holdBack(reader: ReturnType<typeof makeReader>) {
  const [reached, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const asLetGo = async <Read>(read: () => Promise<Read>) => {
    reached.resolve()
    await free.promise
    return await read()
  }
  const parsePool = {
    parse: (raw: MailBytes) => asLetGo(() => reader.parsePool.parse(raw)),
    report: (raw: MailBytes) => asLetGo(() => reader.parsePool.report(raw)),
  }
  return { ...reader, parsePool, reached: reached.promise, letGo: free.resolve }
}

/** Cuts every connection to the database, as when a node is killed or stopped for long. */
async function cutAll({ foundation: { db } }: TestNode): Promise<void> {
  await db.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
}

function makeReader(t: TestContext, place: Place, { foundation }: TestNode) {
  const parsePool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
  t.after(() => parsePool.close())
  return { ...foundation, parsePool, underWay: new UnderWay(join(place.folder, randomUUID())) }
}

test('two lines file in the order in which mail came, whichever reads faster', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api', 'mx'] })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox('both')
  const mails = [
    'Message-ID: <one@far.test>\r\nSubject: One\r\n\r\nOne\r\n',
    'In-Reply-To: <one@far.test>\r\nSubject: Re: One\r\n\r\nTwo\r\n',
  ]
  for (const mail of mails) await receive(node, inbox.address, Buffer.from(mail))
  const tickets = new Tickets()
  const [first, second] = [makeReader(t, place, node), makeReader(t, place, node)]
  const reading = Promise.withResolvers<void>()
  const restored = Promise.withResolvers<void>()
  const slowPool = {
    parse: async (raw: Buffer) => {
      reading.resolve()
      await restored.promise
      return await first.parsePool.parse(raw)
    },
  }
  const isRead = Promise.withResolvers<void>()
  const quickPool = {
    parse: (raw: Buffer) => second.parsePool.parse(raw).finally(() => setImmediate(isRead.resolve)),
  }
  const slow = fileSpooled({ ...first, parsePool: slowPool, tickets }, 1)
  await reading.promise
  const quick = fileSpooled({ ...second, parsePool: quickPool, tickets }, 64)
  await isRead.promise
  restored.resolve()
  await Promise.all([slow, quick])
  const messages = await api.exported(inbox.id)
  assert.deepEqual(
    messages.map(({ subject }) => subject),
    ['One', 'Re: One'],
  )
  assert.equal(new Set(messages.map(({ threadId }) => threadId)).size, 1)
})

test('who comes after one that failed goes on', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api', 'mx'] })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox('after')
  await receive(node, inbox.address, small('after'))
  const tickets = new Tickets()
  const reader = { ...makeReader(t, place, node), tickets }
  const cut = { ...reader, db: { transaction: () => Promise.reject(new Error('cut')) } as unknown as Db }
  await assert.rejects(fileSpooled(cut, 64), /cut/)
  while (await fileSpooled(reader, 64));
  assert.equal((await api.exported(inbox.id)).length, 1)
})

test('mail that is being filed holds up no reader of the outbox, and is filed once when its claim is lost', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api', 'mx'] })
  const { api, secret } = await node.createCaller()
  const inbox = await api.createInbox('busy')
  const { http } = node.app.listening
  const stream = await openStream(t, `http://${http!.host}:${http!.port}`, secret)
  await receive(node, inbox.address, large)
  const [first, second] = [holdBack(makeReader(t, place, node)), makeReader(t, place, node)]
  const held = fileSpooled(first, 64).then(
    () => 'filed',
    () => 'lost',
  )
  await first.reached
  // Another node passes over it, and what that one files is announced at once.
  for (let i = 0; i < 3; i++) await receive(node, inbox.address, small(`small ${i}`))
  while (await fileSpooled(second, 64));
  assert.equal((await api.exported(inbox.id)).length, 3)
  await until('it to be announced', () => stream.events.length === 3)
  await cutAll(node)
  await until('the mail to be filed by the other', async () => {
    await fileSpooled(second, 64)
    return (await api.exported(inbox.id)).length === 4
  })
  first.letGo()
  assert.equal(await held, 'lost')
  const messages = await api.exported(inbox.id)
  assert.deepEqual(
    messages.map(({ subject }) => subject),
    ['small 0', 'small 1', 'small 2', 'Large'],
  )
})

test('reports that are being read hold up no reader of the outbox either, and count once', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['mx'] })
  const { db, secretBox, clock } = node.foundation
  const token = { submissionId: newUuid<SubmissionId>(), position: 0 }
  await receive(node, returnPathOf(secretBox, token, 'inbox.test', clock.now()), large, '')
  const [first, second] = [holdBack(makeReader(t, place, node)), makeReader(t, place, node)]
  const held = readReports(first, 64)
  await first.reached
  assert.equal(await readReports(second, 64), false)
  assert.equal((await db.query('select from kept_mail')).length, 1)
  first.letGo()
  assert.equal(await held, false)
  for (const table of ['kept_mail', 'raw'])
    assert.deepEqual(await db.query(`select from ${table}`), [], table)
})

/** The other end of a pipe, for as long as a process reads it; until one does, null. */
function openRead(pipe: string): number | null {
  try {
    return openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return null
    throw error
  }
}

test('check 97: a mail that ends the process each time is shown as text after five, its neighbours as they are', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api', 'mx'] })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox('poison')
  for (let i = 0; i < 6; i++) await receive(node, inbox.address, i === 2 ? large : small(`small ${i}`))
  const [blob] = blobsIn(join(place.folder, 'blobs'))
  // Reading this one takes for ever; who is at it is killed, as a fault in native code would do.
  renameSync(blob!, `${blob}.away`)
  assert.equal(spawnSync('mkfifo', [blob!]).status, 0)
  const { db } = node.foundation
  const spooled = () =>
    db.query<{ failures: number; isPoison: boolean }>(
      `select s.failures, r.blob is not null as "isPoison" from spool s join raw r on r.id = s.raw_id`,
    )
  const filer = await startPosthorn(t, {
    roles: 'jobs',
    env: {
      POSTHORN_DATABASE_URL: urlOf(place.connection),
      POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
      POSTHORN_BLOB_URL: `file:${join(place.folder, 'blobs')}`,
    },
  })
  for (let failures = 0; failures < 5; ) {
    const pipe = await until('it to be read', () => openRead(blob!))
    await filer.kill9()
    closeSync(pipe)
    if (failures === 4) renameSync(`${blob}.away`, blob!)
    await filer.start()
    const counted = await until('its death to be counted', async () => {
      const row = (await spooled()).find(({ isPoison }) => isPoison)
      if (!row || row.failures > failures) return { failures: row?.failures ?? 5 }
      // On a slow machine it had been put off by the time it was killed: that is no death of its reader, and it is read again.
      const again = failures < 4 ? openRead(blob!) : null
      if (!again) return null
      closeSync(again)
      return { failures }
    })
    failures = counted.failures
  }
  await until('all to be filed', async () => (await spooled()).length === 0)
  const filed = await db.query<{ subject: string; note: string | null }>(
    'select subject, filing_note as note from message order by subject',
  )
  assert.deepEqual(
    filed.map(({ subject, note }) => [subject, note !== null]),
    [['', true], ...[0, 1, 3, 4, 5].map((i) => [`small ${i}`, false])],
  )
})
