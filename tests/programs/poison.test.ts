// A mail whose reading always ends the process is set aside after five times, whatever follows it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { maxInlineBytes } from '../../src/store/mailbox/raws.ts'
import { makePlace, startNode, urlOf } from '../support/node.ts'
import { startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const large = Buffer.from(`Subject: Large\r\n\r\n${'x'.repeat(70).concat('\r\n').repeat(5_000)}`)

const blobsIn = (folder: string) =>
  (readdirSync(folder, { recursive: true }) as string[])
    .filter((name) => name.includes('/'))
    .map((name) => join(folder, name))

test('check 97: a mail that kills the process is shown as text after five times, and its neighbours unchanged', async (t) => {
  const place = await makePlace(t)
  const node = await startNode(place, { roles: ['api', 'mx'] })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox('poison')
  for (let i = 0; i < 6; i++) {
    const raw = i === 2 ? large : Buffer.from(`Subject: small ${i}\r\n\r\nHello.\r\n`)
    const sent = await sendMail(node.smtp, { from: 'a@far.test', to: inbox.address, raw })
    assert.equal(sent.outcome, 'accepted', sent.reply)
  }
  const [blob] = blobsIn(join(place.folder, 'blobs'))
  // Opening this one never returns, because it has no writer. The reader is killed, as by a fault in native code.
  renameSync(blob!, `${blob}.away`)
  assert.equal(spawnSync('mkfifo', [blob!]).status, 0)
  const { db } = node.foundation
  // The first claim of a process finds that the mail is slow to read. The second claim reads it.
  await db.query('create table poison_claim (owner integer, failures integer)')
  await db.query(`create function note_claim() returns trigger language plpgsql
    as 'begin insert into poison_claim values (new.claimed_by, new.failures); return null; end'`)
  await db.query(`create trigger note_claim after update on spool for each row
    when (new.claimed_by is not null and new.size_bytes > ${maxInlineBytes}) execute function note_claim()`)
  const readers = () =>
    db.query<{ failures: number }>(
      'select max(failures) as failures from poison_claim group by owner having count(*) >= 2 order by owner',
    )
  const filer = await startPosthorn(t, {
    roles: 'jobs',
    env: {
      POSTHORN_DATABASE_URL: urlOf(place.connection),
      POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
      POSTHORN_BLOB_URL: `file:${join(place.folder, 'blobs')}`,
    },
  })
  for (let deaths = 0; deaths < 5; deaths++) {
    await until(`it to be read after ${deaths} deaths`, async () => (await readers()).length > deaths)
    await filer.kill9()
    if (deaths === 4) renameSync(`${blob}.away`, blob!)
    await filer.start()
  }
  await until('all to be filed', async () => (await db.query('select from spool')).length === 0)
  const counted = (await readers()).map(({ failures }) => failures)
  assert.deepEqual(counted.slice(0, 5), [0, 1, 2, 3, 4], 'each death counts once')
  const filed = await db.query<{ subject: string; note: string | null }>(
    'select subject, filing_note as note from message order by subject',
  )
  assert.deepEqual(
    filed.map(({ subject, note }) => [subject, note !== null]),
    [['', true], ...[0, 1, 3, 4, 5].map((i) => [`small ${i}`, false])],
  )
})
