// Large messages move from a folder to S3 and back without a loss, and a backup from S3 is restored into S3.
import assert from 'node:assert/strict'
import { rmSync, symlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { command, emptyPlace, passphrase, temporaryFolder, verify } from '../support/backup.ts'
import { filedIn, largeBytes, receiveMail, sourceOf } from '../support/backup-stage.ts'
import { startS3 } from '../support/s3.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const s3 = await startS3({ after })

interface MoveAnswer {
  copied: number
  copiedBytes: number
  lost: string[]
  status: 'done' | 'running'
}

interface NodeList {
  nodes: unknown[]
}

/** Opens a session of SMTP and begins a mail, whose bytes are missing. */
async function openData(t: TestContext, { host, port }: Posthorn['smtp'], to: string): Promise<Socket> {
  const socket = connect(port, host)
  t.after(() => socket.destroy())
  let heard = ''
  socket.on('error', () => {}).on('data', (bytes) => (heard += bytes))
  await until('the banner', () => heard.startsWith('220 '))
  socket.write('EHLO far.test\r\n')
  await until('the answer to EHLO', () => /^250 /m.test(heard))
  socket.write(`MAIL FROM:<a@far.test>\r\nRCPT TO:<${to}>\r\nDATA\r\n`)
  await until('the server to wait for the mail', () => /^354 /m.test(heard))
  return socket
}

test('blobs move from a folder to S3 and back while mail flows, and are backed up from there', async (t) => {
  const posthorn = await startPosthorn(t, { env: { ...s3.env, ...passphrase } })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const [url, folder] = [s3.makeUrl(), `file:${posthorn.folder}/blobs`]
  const move = (from: string, to: string) => posthorn.cli<MoveAnswer>(['blobs', 'move', from, to])
  const receive = (n: number) => receiveMail(posthorn, inbox, `<mail-${n}@sender.test>`, largeBytes)
  const restartWith = async (POSTHORN_BLOB_URL: string) => {
    Object.assign(posthorn.env, { POSTHORN_BLOB_URL })
    await posthorn.start()
  }
  for (let n = 0; n < 3; n++) await receive(n)
  const sources = (await filedIn(api, inbox, 3)).map(({ source }) => source)

  // The first run fails half-way.
  let uploads = 0
  s3.faults.refuse = (call) => call.startsWith('PUT') && ++uploads > 1 && !call.includes('database-id')
  const failed = await command(['blobs', 'move', folder, url], posthorn.env)
  assert.deepEqual([failed.status, /answered 503/.test(failed.stderr)], [1, true])
  s3.heal()
  const bulk = await move(folder, url)
  assert.deepEqual([bulk.status, bulk.lost], ['running', []])
  await receive(3)

  // A service that drains has left the other nodes, but may still store the last mail.
  const session = await openData(t, posthorn.smtp, inbox.address)
  const stopping = posthorn.stop()
  await until('the node to leave', async () => (await posthorn.cli<NodeList>(['nodes'])).nodes.length === 0)
  const draining = await move(folder, url)
  assert.deepEqual([draining.status, draining.copied], ['running', 1])
  session.destroy()
  assert.equal(await stopping, 0)

  // Without the second run, a service on S3 refuses large mail and loses none.
  await restartWith(url)
  const raw = Buffer.alloc(largeBytes, 'x'.repeat(70).concat('\r\n'))
  const early = await sendMail(posthorn.smtp, { from: 'a@far.test', to: inbox.address, raw })
  assert.match(early.reply, /^452/)
  assert.equal(await posthorn.stop(), 0)

  const rest = await move(folder, url)
  assert.deepEqual([rest.status, rest.copied, rest.lost], ['done', 0, []])
  rmSync(join(posthorn.folder, 'blobs'), { recursive: true })
  await restartWith(url)
  await receive(4)
  // A mail whose bytes could not be read is read again after ten seconds.
  const messages = await filedIn(api, inbox, 5, { timeoutMs: 90_000 })
  for (const source of sources) assert.ok(messages.some((found) => found.source.equals(source)))

  // A backup from S3, restored into another prefix.
  const backup = join(temporaryFolder(t), 'backup')
  const made = await posthorn.cli<{ blobs: { count: number } }>(['backup', backup])
  assert.equal(made.blobs.count, 5)
  assert.equal((await verify(backup, posthorn.env)).exitStatus, 0)
  const elsewhere = { ...posthorn.env, POSTHORN_BLOB_URL: s3.makeUrl() }
  const blind = await command(['backup', join(temporaryFolder(t), 'backup')], elsewhere)
  assert.deepEqual([blind.status, /another bucket or prefix/.test(blind.stderr)], [1, true], blind.stderr)
  const env = { ...(await emptyPlace(t, posthorn)), POSTHORN_BLOB_URL: s3.makeUrl() }
  // The restore is interrupted twice: half-way through the blobs, and once the tables are there.
  const restoreWith = async (place: Record<string, string>) => await command(['restore', backup], place)
  uploads = 0
  s3.faults.forbid = (call) => call.startsWith('PUT') && ++uploads > 2
  assert.equal((await restoreWith(env)).status, 1)
  s3.heal()
  const used = await restoreWith({ ...env, POSTHORN_BLOB_URL: url })
  assert.deepEqual([used.status, /used another blob store/.test(used.stderr)], [1, true], used.stderr)
  s3.faults.forbid = (call) => call.startsWith('PUT') && call.includes('database-id')
  assert.equal((await restoreWith(env)).status, 1)
  s3.heal()
  const empty = await restoreWith({ ...env, POSTHORN_BLOB_URL: s3.makeUrl() })
  assert.deepEqual([empty.status, /used another blob store/.test(empty.stderr)], [1, true], empty.stderr)
  // The copy now has the id of the original.
  const taken = await restoreWith({ ...env, POSTHORN_BLOB_URL: url })
  assert.deepEqual([taken.status, /used another blob store/.test(taken.stderr)], [1, true], taken.stderr)
  const restored = await restoreWith(env)
  assert.equal(restored.status, 0, restored.stderr)
  const again = await command(['restore', backup], {
    ...(await emptyPlace(t, posthorn)),
    POSTHORN_BLOB_URL: env.POSTHORN_BLOB_URL,
  })
  assert.match(again.stderr, /is not empty/)

  assert.equal(await posthorn.stop(), 0)
  const back = await move(url, folder)
  assert.deepEqual([back.status, back.copied], ['done', 5])
  // Another name of the same store is noticed, and the store keeps its mark.
  const link = join(temporaryFolder(t), 'link')
  symlinkSync(join(posthorn.folder, 'blobs'), link)
  const same = await command(['blobs', 'move', folder, `file:${link}`], posthorn.env)
  assert.deepEqual([same.status, /are the same store/.test(same.stderr)], [1, true], same.stderr)
  await restartWith(folder)
  await receive(5)
  for (const { message, source } of messages) assert.ok((await sourceOf(api, message)).equals(source))
})
