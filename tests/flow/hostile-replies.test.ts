// Hostile headers through the running service: received, filed, answered, and the answers as a stranger's server takes them.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import fc from 'fast-check'
import type { Acceptance, Answer, Refusal } from '../support/api.ts'
import { faultOfHeader, faultOfReading, hostileMail } from '../support/hostile-headers.ts'
import { openReaders } from '../support/mail-readers.ts'
import { makePlace, startNode } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const readers = openReaders()
after(() => {
  for (const reader of readers) reader.close()
})
const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31)
const count = 30 * Number(process.env['FUZZ_FACTOR'] ?? 1)
const known = [
  { header: 'Subject: =?utf-8?q?hello=0D=0ABcc:_evil@evil.test?=\r\nFrom: a@far.test\r\n', from: '' },
  { header: 'Subject: no sender at all\r\n', from: '' },
]

test(`hostile 4: whatever is received, its thread can be answered and the answer leaves (seed ${seed})`, async (t) => {
  const sink = await startSink(t, { extensions: ['SMTPUTF8', '8BITMIME'] })
  const env = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const node = await startNode(await makePlace(t), { env })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const mails = [...known, ...fc.sample(hostileMail, { numRuns: count, seed })]
  for (const { header, from } of mails) {
    const raw = Buffer.from(`${header}\r\nbody\r\n`, 'latin1')
    const sent = await sendMail(node.smtp, { from, to: inbox.address, raw })
    assert.equal(sent.outcome, 'accepted', `${sent.reply} for ${JSON.stringify(header)}`)
  }
  const sql =
    'select id, thread_id as thread, internet_message_id as mid from message where inbox_id = $1 order by seq'
  const filed = await until('all to be filed', async () => {
    const rows = await node.foundation.db.query<{ id: string; thread: string; mid: string }>(sql, [inbox.id])
    return rows.length === mails.length ? rows : null
  })
  let answered = 0
  for (const { id, thread, mid } of filed) {
    const path = `/v1/threads/${thread}/replies`
    const body = { targetMessageId: id, text: 'T', replyAll: true }
    const call = { method: 'POST', idempotencyKey: randomUUID(), body }
    const answer = await api.call<Acceptance & Refusal & { submission: { recipients: unknown[] } }>(
      path,
      call,
    )
    if (answer.status !== 202) {
      assertRefusal(answer)
      continue
    }
    answered++
    const { message, submission } = answer.body
    const [row] = await node.foundation.db.query<{ mid: string }>(
      'select internet_message_id as mid from message where id = $1',
      [message.id],
    )
    const raw = await until('the answer to leave', () => {
      const copies = sink.copiesOf(row!.mid)
      return copies.length === submission.recipients.length ? copies[0]!.raw : null
    })
    const meant = message as unknown as Parameters<typeof faultOfReading>[2]
    assert.equal(faultOfHeader(raw, mid, ['received', 'dkim-signature', 'auto-submitted']), null)
    for (const reader of readers) assert.equal(await faultOfReading(reader, raw, meant), null)
  }
  t.diagnostic(`${answered} of ${mails.length} had somebody to answer`)
  assert.ok(answered > 1 && answered < mails.length)
})

function assertRefusal({ status, body }: Answer<Refusal>): void {
  assert.deepEqual([status, body.error], [400, 'invalid_request'])
  assert.match(body.message, /must be a message that has an address to reply to$/)
}
