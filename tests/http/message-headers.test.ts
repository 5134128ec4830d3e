// The API returns a received message's header field by field, within bounds.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Inbox, Message } from '../support/api.ts'
import { setStage } from './stage.ts'

const stage = await setStage({ after })
const caller = await stage.createCaller()
const { api } = caller

interface Field {
  name: string
  value: string
  raw: string
}

interface Header {
  headers: Field[]
  truncated?: boolean
}

let marks = 0

/** Receives the mail and returns the message. */
async function receive(inbox: Inbox, header: string | Buffer, body = 'Text\r\n'): Promise<Message> {
  const mark = `<${++marks}@headers.test>`
  const raw = Buffer.concat([
    Buffer.from(`Message-ID: ${mark}\r\n`),
    Buffer.from(header),
    Buffer.from(`\r\n${body}`),
  ])
  await stage.receive(inbox.address, raw)
  const { messages } = await api.want<{ messages: Message[] }>(`/v1/inboxes/${inbox.id}/messages`)
  return messages.find(({ internetMessageId }) => internetMessageId === mark)!
}

const headerOf = ({ id }: Message) => api.want<Header>(`/v1/messages/${id}/headers`)

/** Splits a source into its header fields, independently of our parser. */
function fieldsOf(source: Buffer): string[] {
  const text = source.toString('latin1')
  return text.slice(0, text.indexOf('\r\n\r\n')).split(/\r\n(?![ \t])/)
}

const rawOf = ({ headers }: Header) => headers.map(({ raw }) => raw)

test('headers: a message has its source’s fields, in order, and nothing else', async () => {
  const inbox = await api.createInbox()
  const message = await receive(
    inbox,
    'Received: from a\r\n\tby b;\r\n Mon, 1 Jan 2024 00:00:00 +0000\r\nX-A: 1\r\nx-a:2\r\nFrom: A <a@far.test>\r\nList-Id: <l.far.test>\r\n',
  )
  const header = await headerOf(message)
  assert.deepEqual(rawOf(header), fieldsOf(await api.bytes(`/v1/messages/${message.id}/source`)))
  assert.equal(header.truncated, undefined)
  const names = header.headers.map(({ name }) => name)
  const ours = ['Return-Path', 'Delivered-To', 'Authentication-Results', 'Received-SPF', 'Received']
  assert.deepEqual(names.slice(0, 5), ours)
  assert.deepEqual(names.slice(-6), ['Message-ID', 'Received', 'X-A', 'x-a', 'From', 'List-Id'])
  assert.equal(header.headers.at(-5)!.value, 'from a by b; Mon, 1 Jan 2024 00:00:00 +0000')
})

test('headers: encoded words and raw bytes read as text, one line each, without controls', async () => {
  const inbox = await api.createInbox()
  const message = await receive(
    inbox,
    Buffer.concat([
      Buffer.from('Subject: =?utf-8?q?Z=C3=A4hlen=0D=0ABcc:_x?=\r\nX-Utf8: Zählen\r\n'),
      Buffer.from('X-Latin: Z\xe4hlen\r\nX-Control: a\x01b\r\n', 'latin1'),
    ]),
  )
  const { headers } = await headerOf(message)
  assert.deepEqual(
    headers.slice(-4).map(({ value, raw }) => [value, raw]),
    [
      ['Zählen Bcc: x', 'Subject: =?utf-8?q?Z=C3=A4hlen=0D=0ABcc:_x?='],
      ['Zählen', 'X-Utf8: Zählen'],
      ['Zählen', 'X-Latin: Zählen'],
      ['a b', 'X-Control: a\x01b'],
    ],
  )
})

test('headers: a large header comes whole, and beyond 10,000 fields its first part', async () => {
  const inbox = await api.createInbox()
  const many = await receive(
    inbox,
    Array.from({ length: 4_000 }, (_, n) => `X-${n}: ${'é'.repeat(20)}\r\n`).join(''),
  )
  const source = fieldsOf(await api.bytes(`/v1/messages/${many.id}/source`))
  const whole = await headerOf(many)
  assert.equal(whole.truncated, undefined)
  assert.deepEqual(
    rawOf(whole).map((raw) => Buffer.from(raw).toString('latin1')),
    source,
  )
  const more = await headerOf(await receive(inbox, 'X: 1\r\n'.repeat(12_000)))
  assert.deepEqual([more.truncated, more.headers.length], [true, 10_000])
  const long = `Y: ${'word\r\n '.repeat(30_000)}`
  const longer = await headerOf(await receive(inbox, `X: 1\r\n${long}end\r\n`))
  const last = longer.headers.at(-1)!
  assert.deepEqual([longer.truncated, last.name, last.raw], [undefined, 'Y', `${long}end`])
  assert.equal(last.value, `${'word '.repeat(30_000)}end`)
})

test('headers: a mail without a header has only our trace fields, and a sent message has no source header', async () => {
  const inbox = await api.createInbox()
  await stage.receive(inbox.address, '\r\nNo header at all.\r\n')
  const { messages } = await api.want<{ messages: Message[] }>(`/v1/inboxes/${inbox.id}/messages`)
  const { headers } = await headerOf(messages[0]!)
  assert.ok(headers.some(({ name }) => name === 'Return-Path'))
  assert.ok(!headers.some(({ name }) => name === 'No header at all.'))
  const sent = await api.want<{ message: Message }>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'headers-of-what-was-sent',
    body: { to: [{ email: 'a@far.test' }], subject: 'S', text: 'T' },
  })
  const answer = await api.call(`/v1/messages/${sent.message.id}/headers`)
  assert.deepEqual([answer.status, answer.body.error], [404, 'not_found'])
})

test('automatic: a message is marked by its header, in lists and alone', async () => {
  const inbox = await api.createInbox()
  const cases: [header: string, automatic: boolean][] = [
    ['Subject: By hand\r\n', false],
    ['Auto-Submitted: no\r\n', false],
    ['Auto-Submitted: auto-replied\r\n', true],
    ['Precedence: bulk\r\n', true],
    ['List-Id: <l.far.test>\r\n', true],
    ['List-Unsubscribe: <https://far.test/leave>\r\n', true],
    ['From: Shop <no-reply@far.test>\r\n', true],
  ]
  for (const [header, automatic] of cases) {
    const message = await receive(inbox, header)
    const shown = await api.want<{ automatic?: boolean }>(`/v1/messages/${message.id}`)
    assert.deepEqual(
      [(message as { automatic?: boolean }).automatic, shown.automatic],
      [automatic, automatic],
      header,
    )
  }
})
