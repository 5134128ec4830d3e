// Deletion, retention and the end of an organization delete everything they must, in every table. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { deleteOrganization, previewDeletion } from '../../src/flow/accounts/delete-organization.ts'
import { removeSettled } from '../../src/flow/upkeep/remove-settled.ts'
import type { Acceptance, Api, Inbox, Message } from '../support/api.ts'
import { findLeftovers, findWords } from '../support/leftovers.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const dayMs = 86_400_000

async function start(env: Record<string, string> = {}) {
  const place = await makePlace({ after })
  const sink = await startSink(place)
  const relay = { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  return { sink, node: await startNode(place, { env: { ...relay, ...env } }) }
}

const { node } = await start()
/** Tests move its clock by months. The first of its two tests empties its tables. */
const old = await start({ POSTHORN_RETENTION: '40d', POSTHORN_RETRY_LIFETIME: '90d' })

/** Words that occur nowhere else. */
function makeWords() {
  const mark = randomUUID().slice(0, 8)
  const traces = [`Secretname${mark}`, `Diagnosis${mark}`, `number-${mark}`] as const
  const [name, subject, patient] = traces
  return { mark, traces: [...traces], name: `Grace ${name}`, subject: `${subject} unknown`, patient }
}

type Words = ReturnType<typeof makeWords>

async function openInbox(api: Api, { mark, name }: Words): Promise<Inbox> {
  const body = { localPart: `grace-${mark}`, displayName: name }
  return await api.want('/v1/inboxes', { method: 'POST', status: 201, body })
}

async function write(
  api: Api,
  inbox: Inbox,
  key: string,
  { mark, subject, patient }: Words,
): Promise<Acceptance> {
  const text = `Number-${mark} says hello.`
  const body = { to: [{ email: 'someone@far.test' }], subject, metadata: { patient }, text }
  const path = `/v1/inboxes/${inbox.id}/messages`
  const accepted = await api.want<Acceptance>(path, {
    method: 'POST',
    status: 202,
    idempotencyKey: key,
    body,
  })
  await untilStates(api, accepted.submission.id, 'delivered')
  return accepted
}

const mailOf = ({ mark }: Words) =>
  Buffer.from(`From: a@far.test\r\nSubject: Diagnosis${mark}, received\r\n\r\nNumber-${mark}.\r\n`)

interface Told {
  from: object
  subject: string
  metadata: object
  recipients: { status: string }[]
}

for (const what of ['message', 'inbox'] as const)
  test(`hostile 10: deleting a ${what} removes people’s words, and keeps its submission`, async () => {
    const words = makeWords()
    const { api } = await node.createCaller()
    const inbox = await openInbox(api, words)
    const { message, submission } = await write(api, inbox, 'first-mail', words)
    const path = what === 'message' ? `/v1/messages/${message.id}` : `/v1/inboxes/${inbox.id}`
    await until('it to be deleted', async () => (await api.call(path, { method: 'DELETE' })).status === 204)
    const told = await api.want<Told>(`/v1/submissions/${submission.id}`)
    assert.deepEqual([told.from, told.subject, told.metadata], [{ email: inbox.address }, '', {}])
    assert.equal(told.recipients[0]!.status, 'delivered')
    // If only the message was deleted, the inbox keeps its name.
    const elsewhere = what === 'message' ? ['inbox'] : []
    await until('it to be erased', async () => {
      const found = await findWords(node.foundation.db, words.traces)
      return found.every((table) => elsewhere.includes(table))
    })
    assert.deepEqual(await findLeftovers(node.foundation.db), [])
  })

test('hostile 10: retention removes settled submissions with their events, and no message', async () => {
  const { node, sink } = old
  const { db, clock } = node.foundation
  const { api } = await node.createCaller()
  const words = makeWords()
  const inbox = await openInbox(api, words)
  const { message, submission } = await write(api, inbox, 'first-mail', words)
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '550 5.7.1 no' : null)
  const refused = await send(api, inbox, ['other@far.test'])
  await untilStates(api, refused.submission.id, 'bounced')
  const readBoth = () =>
    Promise.all([message, refused.message].map(({ id }) => api.want<Message>(`/v1/messages/${id}`)))
  const before = await readBoth()
  assert.deepEqual(
    before.map(({ delivery }) => delivery),
    [
      { submissionId: submission.id, status: 'delivered', failureCode: null },
      { submissionId: refused.submission.id, status: 'failed', failureCode: 'policy_rejected' },
    ],
  )
  clock.advance(39 * dayMs)
  assert.equal(await removeSettled(node.foundation, 40 * dayMs, 10), null)
  const replay = await write(api, inbox, 'first-mail', words)
  assert.deepEqual([replay.submission.id, replay.replayed], [submission.id, true])
  clock.advance(2 * dayMs)
  await removeSettled(node.foundation, 40 * dayMs, 10)
  assert.equal((await api.call(`/v1/submissions/${submission.id}`)).status, 404)
  assert.equal((await api.call(`/v1/submissions/${submission.id}/events`)).status, 404)
  assert.deepEqual(await readBoth(), before)
  assert.deepEqual(
    (await api.exported(inbox.id)).map(({ delivery }) => delivery),
    before.map(({ delivery }) => delivery),
  )
  for (const table of ['submission', 'delivery', 'event'])
    assert.deepEqual(await db.query(`select from ${table}`), [], table)
  assert.deepEqual(await findLeftovers(db), [])
  for (const { id } of before) await api.want(`/v1/messages/${id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual(await api.exported(inbox.id), [])
  assert.deepEqual(await findLeftovers(db), [])
})

test('waiting mail is not removed, however old it is', async () => {
  const { node, sink } = old
  const { clock } = node.foundation
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 later' : null)
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const body = { to: [{ email: 'someone@far.test' }], subject: 'Test', text: 'Hello.' }
  const path = `/v1/inboxes/${inbox.id}/messages`
  const { submission } = await api.want<Acceptance>(path, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'waits-long',
    body,
  })
  await untilStates(api, submission.id, 'deferred')
  clock.advance(60 * dayMs)
  await removeSettled(node.foundation, 30 * dayMs, 10)
  await api.want(`/v1/submissions/${submission.id}`)
})

test('hostile 10: an organization is deleted with all its data, and its addresses stay unused', async () => {
  const { db } = node.foundation
  const [{ api, organizationId }, other] = [await node.createCaller(), await node.createCaller()]
  const words = makeWords()
  const inbox = await openInbox(api, words)
  await write(api, inbox, 'first-mail', words)
  const neighbour = await other.api.createInbox('neighbour')
  const raw = mailOf(words)
  assert.equal(
    (await sendMail(node.smtp, { from: 'a@far.test', to: inbox.address, raw })).outcome,
    'accepted',
  )
  await until('it to be filed', async () => (await api.exported(inbox.id)).length === 2)
  const [secret] = words.traces
  const domain = `${secret!.toLowerCase()}.example`
  const webhook = { url: `https://${domain}/hook`, description: secret }
  await api.want('/v1/webhooks', { method: 'POST', status: 201, body: webhook })
  await api.want('/v1/domains', { method: 'POST', status: 201, body: { domain } })
  await api.want('/v1/suppressions', { method: 'POST', status: 201, body: { email: `x@${domain}` } })
  await db.query('update organization set name = $2 where id = $1', [organizationId, words.name])

  const preview = await previewDeletion(node.foundation, organizationId)
  const wanted = {
    inboxes: 1,
    messages: 2,
    submissions: 1,
    domains: 1,
    webhooks: 1,
    keys: 1,
    suppressions: 1,
  }
  assert.deepEqual(preview, { name: words.name, ...wanted })
  const steps: string[] = []
  assert.deepEqual(
    await deleteOrganization(node.foundation, organizationId, (step) => steps.push(step)),
    wanted,
  )
  assert.ok(steps.length > 2)

  assert.deepEqual(await findWords(db, words.traces), [])
  assert.deepEqual(await findLeftovers(db), [])
  const owned = await db.query<{ name: string }>(
    `select table_name as name from information_schema.columns
    where table_schema = 'public' and column_name = 'organization_id' order by 1`,
  )
  const left: string[] = []
  for (const { name } of owned)
    if ((await db.query(`select from ${name} where organization_id = $1`, [organizationId])).length > 0)
      left.push(name)
  assert.deepEqual(left, ['inbox'])
  assert.equal((await api.call('/v1/inboxes')).status, 401)
  const localPart = inbox.address.split('@')[0]
  const taken = await other.api.call('/v1/inboxes', { method: 'POST', body: { localPart } })
  assert.deepEqual([taken.status, taken.body.error], [409, 'address_taken'])
  await other.api.want(`/v1/inboxes/${neighbour.id}`)
  await assert.rejects(
    deleteOrganization(node.foundation, organizationId, () => {}),
    /no organization/,
  )
})

test('hostile 10: an interrupted deletion continues when it is requested again', async () => {
  const words = makeWords()
  const { api, organizationId } = await node.createCaller()
  await write(api, await openInbox(api, words), 'first-mail', words)
  const stop = new Error('broken off')
  const breakOff = (step: string) => {
    if (step.includes('mail')) throw stop
  }
  await assert.rejects(deleteOrganization(node.foundation, organizationId, breakOff), stop)
  assert.equal((await api.call('/v1/inboxes')).status, 403)
  await deleteOrganization(node.foundation, organizationId, () => {})
  assert.deepEqual(await findWords(node.foundation.db, words.traces), [])
})
