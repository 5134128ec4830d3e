// The service with its blobs on S3: large mail is received, sent, read, deleted and swept, and refused while S3 fails.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { newUuid } from '../../src/base/ids.ts'
import { checkBlobs } from '../../src/cli/doctor/blobs.ts'
import { BlobSweeper } from '../../src/flow/upkeep/sweep-blobs.ts'
import type { Message } from '../support/api.ts'
import { makePlace, startNode } from '../support/node.ts'
import { startS3 } from '../support/s3.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const s3 = await startS3({ after })
const url = s3.makeUrl()
const place = await makePlace({ after })
const node = await startNode(place, { env: { POSTHORN_BLOB_URL: url, ...s3.env } })
const { blobs, clock, db, settings } = node.foundation
const caller = await node.createCaller()
const { api } = caller
const inbox = await api.createInbox()
const readyz = `http://127.0.0.1:${node.app.listening.operator.port}/readyz`
beforeEach(() => s3.heal())

const content = randomBytes(260_000)

async function receive(bytes: Buffer): Promise<{ reply: string; id: string }> {
  const messageId = `${randomUUID()}@far.test`
  const encoded = bytes.toString('base64').replaceAll(/.{76}/g, '$&\r\n')
  const raw = [
    ...['From: a@far.test', `Message-ID: <${messageId}>`, 'Content-Type: multipart/mixed; boundary=b', ''],
    ...['--b', '', 'Text', '--b', 'Content-Type: application/octet-stream'],
    ...['Content-Disposition: attachment; filename=x.bin', 'Content-Transfer-Encoding: base64', ''],
    ...[encoded, '--b--', ''],
  ].join('\r\n')
  const { reply } = await sendMail(
    node.smtp,
    { from: 'a@far.test', to: inbox.address, raw: Buffer.from(raw) },
    { timeoutMs: 60_000 },
  )
  return { reply, id: messageId }
}

const untilFiled = (id: string) =>
  until('the mail to be filed', async () =>
    (await api.exported(inbox.id)).find(({ internetMessageId }) => internetMessageId === `<${id}>`),
  )

async function readAttachment(message: Message): Promise<Buffer> {
  const { attachments } = await until('the attachment to be scanned', async () => {
    const found = await api.want<Message>(`/v1/messages/${message.id}`)
    return found.attachments![0]!.scanState === 'clean' ? found : null
  })
  const http = node.app.listening.http!
  const path = `/v1/messages/${message.id}/attachments/${attachments![0]!.id}`
  const response = await fetch(`http://127.0.0.1:${http.port}${path}`, {
    headers: { 'x-api-key': caller.secret },
  })
  assert.equal(response.status, 200)
  return Buffer.from(await response.arrayBuffer())
}

const send = (sizeBytes: number) => {
  const attached = { filename: 'x.bin', contentType: 'application/octet-stream' }
  const attachments = [{ ...attached, content: randomBytes(sizeBytes).toString('base64') }]
  const body = { to: [{ email: inbox.address }], subject: 'T', text: 'T', attachments }
  return api.call(`/v1/inboxes/${inbox.id}/messages`, { method: 'POST', idempotencyKey: randomUUID(), body })
}

const namedBlobs = async () =>
  (await db.query<{ blob: string }>('select blob from raw where blob is not null'))
    .map(({ blob }) => blob)
    .sort()
const storedBlobs = () =>
  s3
    .listObjects(/[0-9a-f]{2}\/[0-9a-f-]{36}$/)
    .map((name) => name.split('/').at(-1)!)
    .sort()

test('a large mail is stored on S3 before it is acknowledged, and its attachment is read by range', async () => {
  const { reply, id } = await receive(content)
  assert.match(reply, /^250/)
  assert.deepEqual(await namedBlobs(), storedBlobs())
  const message = await untilFiled(id)
  const before = s3.calls.length
  assert.ok((await readAttachment(message)).equals(content))
  assert.ok(s3.calls.slice(before).some((call) => call.startsWith('GET ')))
  await api.want(`/v1/messages/${message.id}`, { method: 'DELETE', status: 204 })
  await until('its object to be deleted', async () => storedBlobs().length === 0)
})

test('a send with a large attachment is composed from S3', async () => {
  assert.equal((await send(300_000)).status, 202)
  const received = await until('the mail to return', async () =>
    (await api.exported(inbox.id)).find(({ direction }) => direction === 'inbound'),
  )
  assert.equal(received.attachments!.length, 1)
})

test('S3 that fails every third call costs no acknowledged mail', async () => {
  s3.faults.failEvery = 3
  const sent = await Promise.all(Array.from({ length: 6 }, () => receive(content)))
  for (const { reply } of sent) assert.match(reply, /^250/)
  for (const { id } of sent) assert.ok((await readAttachment(await untilFiled(id))).equals(content))
  const stored = storedBlobs()
  for (const blob of await namedBlobs()) assert.ok(stored.includes(blob), blob)
})

test('while S3 is away large mail is refused, small mail goes on, and mail that waits is not lost', async () => {
  const { id } = await receive(content)
  s3.faults.refuse = () => true
  await until('readiness to report it', async () => (await fetch(readyz)).status === 503)
  assert.match((await receive(content)).reply, /^452 4\.3\.0/)
  assert.equal((await send(300_000)).status, 503)
  const small = await receive(randomBytes(1_000))
  assert.match(small.reply, /^250/)
  await untilFiled(small.id)
  const away = await checkBlobs(blobs, db, settings)
  assert.deepEqual([away.status, /answered 503 ServiceUnavailable/.test(away.detail)], ['failed', true])
  s3.heal()
  await until('readiness to report it', async () => (await fetch(readyz)).status === 200)
  assert.ok((await readAttachment(await untilFiled(id))).equals(content))
  for (const word of ['gone', 'back']) assert.match(node.log(), new RegExp(`the blob store is ${word}`))
})

test('an object that S3 loses later is named by the doctor and by the sweep', async () => {
  const before = await namedBlobs()
  const { reply } = await receive(content)
  assert.match(reply, /^250/)
  const [lost] = (await namedBlobs()).filter((blob) => !before.includes(blob))
  await blobs.delete(lost!)
  const { status, detail } = await checkBlobs(blobs, db, settings)
  assert.deepEqual([status, detail.includes(lost!)], ['failed', true])
  await sweepPartOf(lost!)
  const lines = node.log().split('\n')
  assert.ok(lines.some((line) => line.includes('large messages are lost') && line.includes(lost!)))
  await db.query('delete from spool where raw_id = $1', [lost])
  await db.query('delete from message where raw_id = $1', [lost])
  await db.query('delete from raw where id = $1', [lost])
})

/** Sweeps the part of the store that has this blob. */
async function sweepPartOf(key: string): Promise<void> {
  const sweeper = new BlobSweeper(node.foundation, Number.parseInt(key.slice(-2), 16))
  while (await sweeper.sweepNext(100));
}

test('an orphan on S3 is swept after two days, with an upload that was never completed', async () => {
  const named = await namedBlobs()
  const [orphan, unfinished] = [newUuid(), newUuid()]
  await blobs.put(orphan, Buffer.from('orphan'))
  const writer = await blobs.create(unfinished)
  await writer.write(Buffer.alloc((16 << 20) + 1))
  const sweepBoth = async () => {
    for (const key of [orphan, unfinished]) await sweepPartOf(key)
  }
  await sweepBoth()
  assert.deepEqual([storedBlobs().length, s3.uploads.size], [named.length + 1, 1])
  clock.advance(3 * 86_400_000)
  // A store without times does not say that they are old.
  s3.faults.hideTimes = true
  await sweepBoth()
  assert.deepEqual([storedBlobs().length, s3.uploads.size], [named.length + 1, 1])
  s3.heal()
  await sweepBoth()
  assert.deepEqual([storedBlobs(), s3.uploads.size], [named, 0])
  await writer.abort()
})
