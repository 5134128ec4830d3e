// Deletion during delivery: mail in transfer completes, waiting mail is cancelled, no row stays. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Api, Inbox, Message } from '../support/api.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { findLeftovers, findWords } from '../support/leftovers.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'
import { startReceiver } from '../support/webhook-receiver.ts'

// A deployment with every part that handles mail: a smarthost, a scanner, and a webhook endpoint.
const place = await makePlace({ after })
const [sink, receiver] = [await startSink(place), await startReceiver(place)]
const clamd = await fakeClamd(place, (socket, received) => {
  if (streamed(received)) socket.end('stream: OK\0')
})
const env = {
  POSTHORN_DELIVERY: 'relay',
  POSTHORN_RELAY_URL: sink.url,
  POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  POSTHORN_CLAMD: `${clamd.host}:${clamd.port}`,
}
const node = await startNode(place, { env })
const { db } = node.foundation

interface Stage {
  organizationId: string
  api: Api
  inbox: Inbox
}

/** An organization with an inbox. Clears the rules and the copies of the far server. */
async function setStage(): Promise<Stage> {
  sink.rule = () => null
  sink.copies = []
  const { organizationId, api } = await node.createCaller()
  return { organizationId, api, inbox: await api.createInbox() }
}

/** Its endpoint receives every event. */
async function setStageWithEndpoint(): Promise<Stage> {
  const stage = await setStage()
  await stage.api.want('/v1/webhooks', { method: 'POST', status: 201, body: { url: receiver.url() } })
  return stage
}

const folder = join(place.folder, 'blobs')
const blobs = () =>
  (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.includes('/')).sort()

/** Makes the far server hold each message until `release`. */
function holdMessages(): { isHeld: () => boolean; release: () => void } {
  let [release, isHeld] = [() => {}, false]
  const held = new Promise<null>((resolve) => (release = () => resolve(null)))
  sink.rule = ({ stage }) => {
    if (stage !== 'message') return null
    isHeld = true
    return held
  }
  return { isHeld: () => isHeld, release: () => release() }
}

const remove = (api: Api, path: string) => api.call(path, { method: 'DELETE' })

async function codes(api: Api, submissionId: string): Promise<(string | null)[]> {
  const { failureCode, status } = await api.want<{ failureCode: string | null; status: string }>(
    `/v1/submissions/${submissionId}`,
  )
  return [status, failureCode]
}

/** Counts rows of the organization. */
async function count({ organizationId }: Stage, table: string, condition = 'true'): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*) as count from ${table} where organization_id = $1 and ${condition}`,
    [organizationId],
  )
  return row!.count
}

for (const what of ['message', 'inbox'] as const)
  test(`check 77: deleting the ${what} of a mail on the wire gets 409, and succeeds afterwards`, async () => {
    const { api, inbox } = await setStage()
    const { isHeld, release } = holdMessages()
    const { submission, message } = await send(api, inbox, ['someone@far.test'], { key: 'on-the-wire' })
    await until('it to be on the wire', isHeld)
    const path = what === 'message' ? `/v1/messages/${message.id}` : `/v1/inboxes/${inbox.id}`
    const refused = await until('the claim to be seen', async () => {
      const answer = await remove(api, path)
      return answer.status === 409 ? answer : null
    })
    assert.equal(refused.body.error, 'delivery_in_progress')
    await api.want(`/v1/messages/${message.id}`)
    release()
    await untilStates(api, submission.id, 'delivered')
    assert.equal((await remove(api, path)).status, 204)
    assert.equal((await remove(api, path)).status, 204)
    assert.equal((await api.call(`/v1/messages/${message.id}`)).status, 404)
    assert.deepEqual(await codes(api, submission.id), ['delivered', null])
    const body = { to: [{ email: 'someone@far.test' }], subject: 'Test', text: 'Hello.' }
    const replay = await api.call(`/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      idempotencyKey: 'on-the-wire',
      body,
    })
    assert.deepEqual([replay.status, replay.body.error], [410, 'idempotency_result_expired'])
  })

test('check 77: waiting mail of a deleted message or inbox is never sent', async () => {
  const { api, inbox } = await setStage()
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 later' : null)
  const [one, two] = [
    await send(api, inbox, ['a@far.test', 'b@far.test']),
    await send(api, inbox, ['c@far.test']),
  ]
  await untilStates(api, one.submission.id, 'deferred', 'deferred')
  await untilStates(api, two.submission.id, 'deferred')
  await until('message and claims to be let go of', async () => {
    return (await remove(api, `/v1/messages/${one.message.id}`)).status === 204
  })
  assert.deepEqual(await codes(api, one.submission.id), ['failed', 'cancelled'])
  assert.equal((await remove(api, `/v1/inboxes/${inbox.id}`)).status, 204)
  assert.deepEqual(await codes(api, two.submission.id), ['failed', 'inbox_deleted'])
  sink.rule = () => null
  node.foundation.clock.advance(86_400_000)
  const other = await api.createInbox()
  const { submission } = await send(api, other, ['d@far.test'])
  await untilStates(api, submission.id, 'delivered')
  assert.equal(sink.copies.length, 1)
})

test('check 77: a deleted inbox leaves nothing but its name', async () => {
  const stage = await setStage()
  const { api, inbox } = stage
  const content = Buffer.alloc(400_000, 'large').toString('base64')
  const attachments = [{ filename: 'a.bin', contentType: 'application/octet-stream', content }]
  const body = { to: [{ email: 'x@far.test' }], subject: 'Test', text: 'Hello.', attachments }
  for (let i = 0; i < 3; i++)
    await api.want(`/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      status: 202,
      idempotencyKey: `attached-${i}`,
      body,
    })
  const { message } = await send(api, inbox, [inbox.address])
  await until('everything to arrive', async () => {
    const inbound = (await api.exported(inbox.id)).filter(({ direction }) => direction === 'inbound')
    return sink.copies.length === 3 && inbound.length === 1
  })
  assert.equal(blobs().length, 3)
  await until('the deletion', async () => (await remove(api, `/v1/inboxes/${inbox.id}`)).status === 204)
  for (const path of [
    `/v1/inboxes/${inbox.id}`,
    `/v1/messages/${message.id}`,
    `/v1/threads/${message.threadId}`,
  ])
    assert.equal((await api.call(path)).status, 404, path)
  assert.equal((await api.call(`/v1/inboxes/${inbox.id}/export`)).status, 410)
  await until('the purge', async () => (await count(stage, 'inbox', 'purged')) === 1)
  for (const table of ['message', 'thread', 'spool']) assert.equal(await count(stage, table), 0, table)
  // Earlier tests left no row either.
  assert.deepEqual(await db.query('select from raw'), [])
  assert.ok(existsSync(folder))
  // Files are deleted after the commit that deletes their rows.
  await until('the files to go', () => blobs().length === 0)
  // The same organization may take the address again; others may not.
  const localPart = inbox.address.split('@')[0]!
  const other = await node.createCaller()
  const taken = await other.api.call('/v1/inboxes', { method: 'POST', body: { localPart } })
  assert.deepEqual([taken.status, taken.body.error], [409, 'address_taken'])
  const again = await api.createInbox(localPart)
  assert.notEqual(again.id, inbox.id)
  assert.deepEqual(await api.want<{ messages: Message[] }>(`/v1/inboxes/${again.id}/messages`), {
    messages: [],
    nextCursor: null,
  })
})

test('a deletion during sending leaves each mail either delivered once or cancelled', async () => {
  const stage = await setStage()
  const { api } = stage
  for (let round = 0; round < 6; round++) {
    const inbox = await api.createInbox()
    const sending = Array.from({ length: 12 }, (_, i) =>
      send(api, inbox, [`r${i}@far.test`]).catch(() => null),
    )
    await until('the deletion', async () => (await remove(api, `/v1/inboxes/${inbox.id}`)).status === 204)
    for (const accepted of await Promise.all(sending)) {
      if (!accepted) continue
      const ended = await until('its end', async () => {
        const [status, code] = await codes(api, accepted.submission.id)
        return status === 'pending' ? null : { status, code }
      })
      const copies = sink.copiesOf(accepted.message.internetMessageId).length
      if (ended.status === 'delivered') assert.equal(copies, 1)
      else assert.deepEqual([ended.code, copies], ['inbox_deleted', 0])
    }
  }
  const unsettled = `(claim_epoch is not null or status in ('pending', 'deferred'))`
  assert.equal(await count(stage, 'delivery', unsettled), 0)
})

/** A mail of two parts. `words` appear in its text, its HTML, its header and the name of its attachment. */
function mailWith(words: string, sizeBytes: number, subject: string): Buffer {
  const content = Buffer.alloc(sizeBytes, words).toString('base64').replace(/.{76}/g, '$&\r\n')
  return Buffer.from(
    `From: "${words}" <${words}@far.test>\r\nTo: ${words}@else.test\r\nSubject: ${subject}\r\nMessage-ID: <${words}${sizeBytes}@far.test>\r\n` +
      `Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>${words}</p>\r\n` +
      `--b\r\nContent-Disposition: attachment; filename=${words}.bin\r\nContent-Type: application/octet-stream\r\n` +
      `Content-Transfer-Encoding: base64\r\n\r\n${content}\r\n--b--\r\n`,
  )
}

/** Waits until deleted inboxes are purged, and no filing, scan or webhook call is pending. */
async function untilQuiet(): Promise<void> {
  const left = [
    'spool',
    'scan',
    `inbox where status = 'deleted' and not purged`,
    `kept_mail where purpose <> 'operator'`,
    `webhook_delivery where status = 'pending'`,
    'delivery where claim_epoch is not null',
  ]
  await until('everything to be quiet', async () => {
    for (const rows of left) if ((await db.query(`select from ${rows} limit 1`)).length > 0) return false
    return true
  })
}

test('check 77: no table and no file keeps a word of a deleted message or inbox', async () => {
  const { api, inbox } = await setStageWithEndpoint()
  const [kept, word, other] = [await api.createInbox(), 'wombatquokka', 'numbatpotoroo']
  const body = {
    to: [{ email: 'someone@far.test', name: word }],
    subject: 'Test',
    text: word,
    html: `<b>${word}</b>`,
    replyTo: { email: `${word}@else.test` },
    attachments: [
      { filename: `${word}.txt`, contentType: 'text/plain', content: Buffer.from(word).toString('base64') },
      {
        filename: 'large.bin',
        contentType: 'text/plain',
        content: Buffer.alloc(400_000, word).toString('base64'),
      },
    ],
  }
  const sent = await api.want<{ message: Message; submission: { id: string } }>(
    `/v1/inboxes/${inbox.id}/messages`,
    { method: 'POST', status: 202, idempotencyKey: 'with-attachments', body },
  )
  await untilStates(api, sent.submission.id, 'delivered')
  for (const [to, words] of [
    [inbox.address, word],
    [kept.address, other],
  ] as const)
    for (const sizeBytes of [10, 400_000]) {
      const raw = mailWith(words, sizeBytes, words)
      const delivered = await sendMail(node.smtp, { from: `${words}@far.test`, to, raw })
      assert.equal(delivered.outcome, 'accepted')
    }
  const received = await until('all to arrive', async () => {
    const both = [await api.exported(inbox.id), await api.exported(kept.id)]
    return both[0]!.length === 3 && both[1]!.length === 2 ? both : null
  })
  await untilQuiet()
  // Deletes one message first, so that each kind of deletion is tested.
  await api.want(`/v1/messages/${received[0]!.at(-1)!.id}`, { method: 'DELETE', status: 204 })
  await api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  await untilQuiet()
  await until('the blobs to go', () => blobs().length === 1)
  assert.deepEqual(await findWords(db, [word]), [])
  assert.ok((await findWords(db, [other])).includes('message'), 'what is kept is found in this way')
  assert.deepEqual(await findLeftovers(db), [])
  assert.equal((await api.exported(kept.id)).length, 2)
  await api.want(`/v1/submissions/${sent.submission.id}`)
  for (const { id } of received[1]!) await api.want(`/v1/messages/${id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual(await findWords(db, [other]), [])
  assert.deepEqual(await findLeftovers(db), [])
  assert.deepEqual(blobs(), [])
})

test('check 77: a thread forgets the details that only its deleted message held', async () => {
  const { api, inbox } = await setStageWithEndpoint()
  const mail = (id: string, fields: string) =>
    Buffer.from(
      `From: <${id}@far.test>\r\nCc: copy-${id}@far.test\r\nMessage-ID: <${id}@x>\r\n${fields}\r\n\r\nText\r\n`,
    )
  const mails = [
    mail('first', 'Subject: One'),
    mail('second', 'Subject: Two\r\nIn-Reply-To: <first@x>'),
    mail('third', 'Subject: Three\r\nIn-Reply-To: <first@x>'),
  ]
  for (const [index, raw] of mails.entries()) {
    await sendMail(node.smtp, { from: 'a@far.test', to: inbox.address, raw })
    await until('it to arrive', async () => (await api.exported(inbox.id)).length === index + 1)
  }
  const [first] = await api.exported(inbox.id)
  const thread = () =>
    api.want<{ subject: string; participants: string[]; messageCount: number }>(
      `/v1/threads/${first!.threadId}`,
    )
  const seen = (name: string) => [`${name}@far.test`, `copy-${name}@far.test`]
  assert.deepEqual((await thread()).participants, [...seen('first'), ...seen('second'), ...seen('third')])
  await api.want(`/v1/messages/${first!.id}`, { method: 'DELETE', status: 204 })
  const { subject, participants, messageCount } = await thread()
  assert.deepEqual([subject, participants, messageCount], ['Two', [...seen('second'), ...seen('third')], 2])
  await untilQuiet()
  assert.deepEqual(await findWords(db, ['copy-first']), [])
})

interface Arrival {
  messageId: string
  reply: string
}

/** Sends mails to an inbox one after another: small ones, and large ones with attachments. */
async function mailTo({ address }: Inbox, count: number): Promise<Arrival[]> {
  const arrivals: Arrival[] = []
  for (let i = 0; i < count; i++) {
    const word = randomUUID().slice(0, 8)
    const sizeBytes = i % 3 === 2 ? 300_000 : 10
    const raw = mailWith(word, sizeBytes, 'Arrives')
    const { outcome, reply } = await sendMail(node.smtp, { from: 'a@far.test', to: address, raw })
    assert.match(outcome === 'accepted' ? '250' : reply, /^(250|550 5\.1\.1|4)/)
    if (outcome === 'accepted') arrivals.push({ messageId: `<${word}${sizeBytes}@far.test>`, reply })
  }
  return arrivals
}

/** Sends from an inbox until it is deleted. Each delivered mail bounces. */
async function sendAndBounce({ api }: Stage, inbox: Inbox, count: number): Promise<void> {
  const content = Buffer.alloc(1000, 'x').toString('base64')
  const attachments = [{ filename: 'a.txt', contentType: 'text/plain', content }]
  for (let i = 0; i < count; i++) {
    const body = { to: [{ email: `r${i}@far.test` }], subject: 'Sent', text: 'Hello.', attachments }
    const answer = await api.call<{ message: Message }>(`/v1/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      idempotencyKey: randomUUID(),
      body,
    })
    assert.ok([202, 404].includes(answer.status), String(answer.status))
    if (answer.status === 404) return
    const { internetMessageId } = answer.body.message
    const [copy] = await until('it to go out, or not', async () => {
      const copies = sink.copiesOf(internetMessageId)
      const isGone = (await api.call(`/v1/inboxes/${inbox.id}`)).status === 404
      return copies.length > 0 || isGone ? copies : null
    })
    if (!copy) return
    const raw = Buffer.from(
      'Subject: Undelivered\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n' +
        'Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; far.test\r\n\r\n' +
        `Final-Recipient: rfc822; r${i}@far.test\r\nAction: failed\r\nStatus: 5.2.2\r\n\r\n--b--\r\n`,
    )
    await sendMail(node.smtp, { from: '', to: copy.from, raw })
  }
}

/** Deletes up to `most` messages of the inbox as they arrive, until the inbox is deleted. Returns their Message-IDs. */
async function deleteSome({ api }: Stage, inbox: Inbox, most: number): Promise<Set<string>> {
  const gone = new Set<string>()
  while (gone.size < most) {
    const answer = await api.call<{ messages: Message[] }>(`/v1/inboxes/${inbox.id}/export?limit=20`)
    if (answer.status !== 200) {
      assert.equal(answer.status, 410)
      return gone
    }
    const chosen = answer.body.messages[Math.floor(Math.random() * answer.body.messages.length)]
    if (!chosen) continue
    const { status } = await remove(api, `/v1/messages/${chosen.id}`)
    assert.ok([204, 409].includes(status), String(status))
    if (status === 204) gone.add(chosen.internetMessageId)
  }
  return gone
}

test('check 77: deletions during receiving, sending, scanning, reports and webhooks lose and leave nothing', async () => {
  const stage = await setStageWithEndpoint()
  const { api, inbox: living } = stage
  const deleting = deleteSome(stage, living, 12)
  const arriving = mailTo(living, 30)
  for (let round = 0; round < 4; round++) {
    const inbox = await api.createInbox()
    const work = [mailTo(inbox, 9), sendAndBounce(stage, inbox, 6)]
    await until('it to be in use', async () => {
      const page = await api.call<{ messages: Message[] }>(`/v1/inboxes/${inbox.id}/export?limit=20`)
      return page.body.messages.length > round
    })
    // Started only now: earlier, it would delete as fast as mail arrives, and the inbox would never fill.
    const side = deleteSome(stage, inbox, 1_000)
    await until('the inbox to go', async () => {
      const { status } = await remove(api, `/v1/inboxes/${inbox.id}`)
      assert.ok([204, 409].includes(status), String(status))
      return status === 204
    })
    await Promise.all([...work, side])
    await until('the address to be gone', async () => {
      const raw = mailWith('late', 10, 'Late')
      const { reply } = await sendMail(node.smtp, { from: 'a@far.test', to: inbox.address, raw })
      return reply.startsWith('550 5.1.1')
    })
  }
  const arrived = (await arriving).map(({ messageId }) => messageId)
  const gone = await deleting
  await untilQuiet()
  const left = (await api.exported(living.id)).map(({ internetMessageId }) => internetMessageId)
  assert.equal(arrived.length, 30)
  assert.deepEqual(left.sort(), arrived.filter((id) => !gone.has(id)).sort())
  assert.deepEqual(await findLeftovers(db), [])
  const named = await db.query<{ blob: string }>('select blob from raw where blob is not null order by blob')
  await until('the blobs to be those that rows name', () => blobs().length === named.length)
})
