// What the desk shows: nodes, backlog, the doctor's lines, numbers, and mail for nobody but the operator.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openedDesk } from '../support/desk.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const env = { POSTHORN_DELIVERY: 'capture' }
const node = await startNode(place, { env })
const desk = await openedDesk(node)

// A second node is started for it.
test('nodes say what they run, and a lost one is seen', async (t) => {
  const second = await startNode(place, { env, roles: ['api', 'webhooks'] })
  t.after(() => second.stop())
  const { port } = second.app.listening.operator
  const { nodes, backlog } = await desk.get<{
    nodes: {
      id: number
      roles: string[]
      operator: string
      smtp: string | null
      isAlive: boolean
      version: string
    }[]
    backlog: Record<string, unknown>
  }>('/nodes')
  assert.equal(nodes.length, 2)
  assert.ok(nodes.every(({ isAlive, version }) => isAlive && /^\d+\.\d+\.\d+/.test(version)))
  const [first, other] = nodes
  assert.ok(first!.roles.includes('mx') && first!.smtp !== null)
  assert.deepEqual(
    [other!.roles, other!.operator, other!.smtp],
    [['api', 'webhooks'], `127.0.0.1:${port}`, null],
  )
  assert.equal(backlog['spooled'], 0)
  await node.foundation.db.query(`insert into node (id, started_at) values (nextval('node_id'), now())`)
  const [, , lost] = (await desk.get<{ nodes: { isAlive: boolean; roles: string[] }[] }>('/nodes')).nodes
  assert.deepEqual([lost!.isAlive, lost!.roles], [false, []])
})

test('the doctor’s lines are made when they are asked for, and stay', async () => {
  type Health = { state: string; checks: { name: string; status: string; mend: string | null }[] }
  assert.deepEqual((await desk.get<Health>('/health')).state, 'none')
  assert.equal((await desk.post<Health>('/health')).state, 'running')
  const { state, checks } = await until('the checks', async () => {
    const health = await desk.get<Health>('/health')
    return health.state === 'running' ? null : health
  })
  assert.equal(state, 'done')
  const statusOf = (wanted: string) => checks.find(({ name }) => name === wanted)?.status
  for (const name of ['settings', 'data folder', 'database', 'blobs', 'signing key', 'TLS certificate'])
    assert.equal(statusOf(name), 'ok', name)
  assert.equal(statusOf('clamd'), 'skipped')
  assert.ok(
    checks.every(({ status, mend }) => (status === 'failed' || status === 'warning') === (mend !== null)),
  )
})

test('the numbers are those of /metrics, without buckets', async () => {
  const { numbers } = await desk.get<{
    numbers: { name: string; values: { labels: object; value: number }[] }[]
  }>('/numbers')
  const valuesOf = (wanted: string) => numbers.find(({ name }) => name === wanted)?.values
  assert.deepEqual(valuesOf('posthorn_database_up'), [{ labels: {}, value: 1 }])
  assert.ok(valuesOf('nodejs_eventloop_lag_p99_seconds')!.length === 1)
  assert.doesNotMatch(JSON.stringify(numbers), /"le":/)
})

test('mail for the service itself, and captured mail, are listed, read and downloaded', async () => {
  type List = {
    mails: { id: string; subject: string; from: string; recipients: string[]; isUnread: boolean }[]
    isFilled: boolean
  }
  assert.deepEqual(await desk.get('/mail/kept'), { mails: [], nextCursor: null, isFilled: true })
  const raw = [
    'From: =?utf-8?q?Gr=C3=BC=C3=9Fe?= <abuse@isp.test>',
    'To: postmaster@inbox.test',
    'Subject: =?utf-8?q?Beschwerde_=C3=BCber?= 192.0.2.7',
    'Content-Type: text/html; charset=utf-8',
    '',
    '<p>Hello <b>operator</b><script>alert(1)</script></p>',
    '',
  ].join('\r\n')
  await sendMail(node.smtp, { from: 'abuse@isp.test', to: 'postmaster@inbox.test', raw: Buffer.from(raw) })
  const { mails } = await until('the mail', async () => {
    const list = await desk.get<List>('/mail/kept')
    return list.mails.length > 0 ? list : null
  })
  const [mail] = mails
  assert.equal(mail!.isUnread, true)
  assert.deepEqual(
    [mail!.from, mail!.subject, mail!.recipients],
    ['Grüße <abuse@isp.test>', 'Beschwerde über 192.0.2.7', ['postmaster@inbox.test']],
  )
  const shown = await desk.get<{
    text: string
    hasHtml: boolean
    headers: { name: string; value: string }[]
  }>(`/mail/kept/${mail!.id}`)
  assert.equal(shown.text.trim(), 'Hello operator')
  assert.equal(shown.hasHtml, true)
  assert.deepEqual(shown.headers[1], { name: 'To', value: 'postmaster@inbox.test' })
  assert.equal((await desk.get<List>('/mail/kept')).mails[0]!.isUnread, false)
  const source = await fetch(`${desk.base}/desk/v1/mail/kept/${mail!.id}/source`, {
    headers: { cookie: desk.cookie },
  })
  assert.equal(source.headers.get('content-type'), 'message/rfc822')
  assert.match(source.headers.get('content-disposition')!, /^attachment/)
  assert.match(await source.text(), /<script>alert/)
  assert.equal((await fetch(source.url)).status, 401)

  const { api } = await node.createCaller()
  const { submission } = await send(api, await api.createInbox(), ['someone@far.test'])
  await untilStates(api, submission.id, 'delivered')
  const captured = await desk.get<List>('/mail/captured')
  assert.deepEqual(captured.mails[0]!.recipients, ['someone@far.test'])
  const one = await desk.get<{ text: string }>(`/mail/captured/${captured.mails[0]!.id}`)
  assert.ok(one.text.length > 0)
})
