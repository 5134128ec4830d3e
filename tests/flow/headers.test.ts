// Names, subjects, addresses and files written into headers, also in replies to hostile mail, as other parsers read them.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { Acceptance, Answer, Message, Refusal, Submission } from '../support/api.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { type Deployment, deploy, makeSender, type Sender } from '../support/deployment.ts'
import { faultOfHeader, faultOfReading, hostileMail } from '../support/hostile-headers.ts'
import { openReaders, type ReadMail } from '../support/mail-readers.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

const readers = openReaders()
let sink: Sink
let deployment: Deployment
let sender: Sender
const endings: (() => void | Promise<void>)[] = []
before(async () => {
  const scope = { after: (end: () => void | Promise<void>) => void endings.push(end) }
  sink = await startSink(scope)
  const clamd = await fakeClamd(scope, (socket, received) => {
    if (streamed(received)) socket.end('stream: OK\0')
  })
  const env = {
    POSTHORN_DELIVERY: 'relay',
    POSTHORN_RELAY_URL: sink.url,
    POSTHORN_CLAMD: `${clamd.host}:${clamd.port}`,
  }
  deployment = await deploy(scope, { nodes: 1, env, roles: ['api', 'mx', 'jobs', 'delivery'] })
  sender = await makeSender(deployment)
})
after(async () => {
  for (const end of endings.reverse()) await end()
  for (const reader of readers) reader.close()
})

type Accepted = Answer<Refusal & Submission & { submission?: Submission }>

function post(path: string, body: object): Promise<Accepted> {
  return sender.api.call(path, { method: 'POST', idempotencyKey: randomUUID(), body })
}

/** The mail of an accepted send as the far server received it, with the recipients of its envelope. */
async function received({ status, body }: Accepted): Promise<{ raw: Buffer; envelope: string[] }> {
  assert.equal(status, 202, JSON.stringify(body))
  const { id, recipients } = body.submission ?? body
  const sql = `select coalesce(m.internet_message_id, c.internet_message_id) as id from submission s
    left join message m on m.id = s.message_id left join send_content c on c.submission_id = s.id where s.id = $1`
  const [row] = await deployment.nodes[0]!.foundation.db.query<{ id: string }>(sql, [id])
  const copies = await until('the mail', () => {
    const found = sink.copiesOf(row!.id)
    return found.length === recipients.length ? found : null
  })
  return { raw: copies[0]!.raw, envelope: copies.map(({ recipient }) => recipient).sort() }
}

async function assertReadAs(raw: Buffer, view: (mail: ReadMail) => unknown, wanted: unknown): Promise<void> {
  for (const reader of readers) {
    // QUIRK: Python's parser reads a header as ASCII unless its policy allows UTF-8 (RFC 6532).
    if (reader.name.startsWith('Python') && hasUtf8Header(raw)) continue
    // QUIRK: mailparser and postal-mime read angle brackets inside a quoted local part as those of the address.
    if (!reader.name.startsWith('Python') && raw.includes('<"<')) continue
    assert.deepEqual(view(await reader.read(raw)), wanted, reader.name)
  }
}

function hasUtf8Header(raw: Buffer): boolean {
  return /[\x80-\xff]/.test(raw.toString('latin1').split('\r\n\r\n')[0]!)
}

/** Asserts that the header has each of these fields, once except for signatures. */
function assertFields(raw: Buffer, wanted: string[]): void {
  const [header = ''] = raw.toString('latin1').split('\r\n\r\n')
  const names = header
    .split(/\r\n(?![ \t])/)
    .map((field) => field.slice(0, field.indexOf(':')).toLowerCase())
    .filter((name) => name !== 'dkim-signature')
  assert.deepEqual(names.sort(), wanted.toSorted())
}

// The key belongs to an agent.
const ours = [
  ...['received', 'date', 'from', 'to', 'subject', 'message-id', 'mime-version', 'content-type'],
  'auto-submitted',
]

/** Values of one line. In other fields, some of them would be more than a name. */
const oneLiners = [
  'Ada Lovelace',
  'Lovelace, Ada',
  'Ada "the first" Lovelace',
  'Ada \\ Lovelace \\',
  '"Ada"',
  "O'Neil (the other)",
  '(a comment)',
  'Ada <evil@evil.example>',
  '<evil@evil.example>',
  'evil@evil.example',
  'evil@evil.example, second@evil.example;',
  'group: evil@evil.example;',
  'Ada; DROP TABLE message',
  '=?utf-8?q?evil=40evil.example?=',
  '=?utf-8?b?DQpCY2M6IGV2aWxAZXZpbC5leGFtcGxl?=',
  'a =?utf-8?q?x?= b',
  '%0d%0aBcc: evil@evil.example',
  '\\r\\nBcc: evil@evil.example',
  'Bcc: evil@evil.example',
  'Zoë Å. Łukasiewicz',
  '山田 太郎',
  'عمر الخيام',
  'שלום',
  '👩‍👩‍👧‍👦 family 🦄',
  'x'.repeat(400),
  'ж'.repeat(400),
  `${'word '.repeat(80)}end`,
  'right\u202eto left',
  'line\u2028separator\u2029paragraph',
  'no\u00a0break',
  'next\u2085line',
  '. leading dot',
  'From here',
  '--boundary',
  '$& $1 {{x}} <%= x %>',
  '&amp; &#13;&#10;Bcc: x',
]

const hidden = [
  '\r\nBcc: evil@evil.example',
  '\nX-Evil: 1',
  '\r\n\r\n<p>body</p>',
  '\rX-Evil: 1',
  '\0',
  '\x1b[2J',
  '\x85',
]

for (const text of oneLiners)
  test(`check 39, 40: ${JSON.stringify(text.slice(0, 50))} works as a name, a subject, a file name and a header, and adds nothing`, async () => {
    const { api, from } = sender
    const inbox = await api.want<{ id: string; address: string }>('/v1/inboxes', {
      method: 'POST',
      status: 201,
      body: { displayName: text.slice(0, 200) },
    })
    const name = text.slice(0, 200).trim()
    const filename = `${text.replaceAll(/[/\\]|=\?/g, '_').slice(0, 200)}.txt`
    const mailbox = (email: string) => ({ email, name: text })
    const message = await post(`/v1/inboxes/${inbox.id}/messages`, {
      to: [mailbox('to@far.test')],
      cc: [mailbox('cc@far.test')],
      bcc: [mailbox('bcc@far.test')],
      replyTo: mailbox('reply@far.test'),
      subject: text,
      text,
      html: `<p>${text}</p>`,
      metadata: { text },
      attachments: [{ filename, contentType: 'text/plain', content: 'QQ==' }],
    })
    const { raw, envelope } = await received(message)
    assert.deepEqual(envelope, ['bcc@far.test', 'cc@far.test', 'to@far.test'])
    const read = ({ subject, from, to, cc, replyTo, attachments }: ReadMail) => ({
      subject,
      from,
      to,
      cc,
      replyTo,
      files: attachments.map(({ filename }) => filename),
    })
    await assertReadAs(raw, read, {
      subject: text,
      from: [{ email: inbox.address, name }],
      to: [mailbox('to@far.test')],
      cc: [mailbox('cc@far.test')],
      replyTo: [mailbox('reply@far.test')],
      files: [filename],
    })
    assertFields(raw, [...ours, 'cc', 'reply-to'])
    assert.ok(!raw.includes('bcc@far.test'))

    const campaign = text
    const sent = await received(
      await post('/v1/send', {
        from: mailbox(from),
        to: [mailbox('to@far.test')],
        replyTo: mailbox('reply@far.test'),
        subject: text,
        text,
        headers: { 'x-campaign': campaign, 'x-entity-ref-id': text },
        metadata: { text },
      }),
    )
    const sentAs = ({ subject, from, to, replyTo }: ReadMail) => ({ subject, from, to, replyTo })
    await assertReadAs(sent.raw, sentAs, {
      subject: text,
      from: [mailbox(from)],
      to: [mailbox('to@far.test')],
      replyTo: [mailbox('reply@far.test')],
    })
    const further = ['reply-to', 'x-campaign', 'x-entity-ref-id', 'feedback-id', 'content-transfer-encoding']
    assertFields(sent.raw, [...ours, ...further])
  })

test('check 39: line breaks and control characters are refused in every field', async (t) => {
  const path = `/v1/inboxes/${sender.inbox.id}/messages`
  const good = { to: [{ email: 'a@far.test' }], subject: 'S', text: 'T' }
  const file = { filename: 'a.txt', contentType: 'text/plain', content: 'QQ==' }
  const fields: [name: string, path: string, body: (text: string) => object][] = [
    ['subject', path, (text) => ({ ...good, subject: text })],
    ['to name', path, (text) => ({ ...good, to: [{ email: 'a@far.test', name: text }] })],
    ['to email', path, (text) => ({ ...good, to: [{ email: `a${text}@far.test` }] })],
    ['to email, quoted', path, (text) => ({ ...good, to: [{ email: `"a${text}"@far.test` }] })],
    ['to domain', path, (text) => ({ ...good, to: [{ email: `a@far${text}.test` }] })],
    ['cc name', path, (text) => ({ ...good, cc: [{ email: 'a@far.test', name: text }] })],
    ['bcc name', path, (text) => ({ ...good, bcc: [{ email: 'a@far.test', name: text }] })],
    ['replyTo name', path, (text) => ({ ...good, replyTo: { email: 'a@far.test', name: text } })],
    ['replyTo email', path, (text) => ({ ...good, replyTo: { email: `a@far.test${text}` } })],
    ['filename', path, (text) => ({ ...good, attachments: [{ ...file, filename: text }] })],
    [
      'contentType',
      path,
      (text) => ({ ...good, attachments: [{ ...file, contentType: `text/plain${text}` }] }),
    ],
    [
      ...(['charset', path] as const),
      (text) => ({ ...good, attachments: [{ ...file, contentType: `text/plain; charset="${text}"` }] }),
    ],
    ['contentId', path, (text) => ({ ...good, attachments: [{ ...file, contentId: `a${text}` }] })],
    ['metadata name', path, (text) => ({ ...good, metadata: { [`a${text}`]: 1 } })],
    ['purpose', path, (text) => ({ ...good, purpose: `transactional${text}` })],
    ['display name', '/v1/inboxes', (text) => ({ displayName: `a${text}` })],
    ['local part', '/v1/inboxes', (text) => ({ localPart: `a${text}` })],
    ['from name', '/v1/send', (text) => ({ ...good, from: { email: sender.from, name: text } })],
    ['from email', '/v1/send', (text) => ({ ...good, from: { email: `${sender.from}${text}` } })],
  ]
  for (const [name, target, body] of fields)
    for (const text of hidden)
      await t.test(`${name} with ${JSON.stringify(text)} is refused`, async () => {
        const answer = await post(target, body(`x${text}y`))
        assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request'])
      })
  for (const text of ['\r\nBcc: evil@evil.example', '\nX-Evil: 1', '\r', '\n', '\0'])
    await t.test(`a further header with ${JSON.stringify(text)} is refused`, async () => {
      const headers = { 'x-campaign': `x${text}y` }
      const answer = await post('/v1/send', { ...good, from: { email: sender.from }, headers })
      assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request'])
    })
})

const addresses: [given: string, written: string][] = [
  ['a@good.example', 'a@good.example'],
  ['First.Last+tag@Good.Example', 'First.Last+tag@good.example'],
  ["o'neil@good.example", "o'neil@good.example"],
  ['!#$%&*+-/=?^_`{|}~@good.example', '!#$%&*+-/=?^_`{|}~@good.example'],
  ['"a b"@good.example', '"a b"@good.example'],
  ['"needless"@good.example', 'needless@good.example'],
  ['"a@evil.example x"@good.example', '"a@evil.example x"@good.example'],
  ['"a,b;c:d"@good.example', '"a,b;c:d"@good.example'],
  ['"a\\"b\\\\c"@good.example', '"a\\"b\\\\c"@good.example'],
  ['"<evil@evil.example>"@good.example', '"<evil@evil.example>"@good.example'],
  ['"(x)"@good.example', '"(x)"@good.example'],
  ['jürgen@good.example', 'jürgen@good.example'],
  ['用户@good.example', '用户@good.example'],
  ['a@bücher.example', 'a@xn--bcher-kva.example'],
  ['a@XN--BCHER-KVA.example', 'a@xn--bcher-kva.example'],
  ['あ@例え.example', 'あ@xn--r8jz45g.example'],
]

for (const [given, written] of addresses)
  test(`check 40, 41: ${given} is one recipient, ${written}, in the envelope and in the header`, async () => {
    const mailbox = { email: given, name: 'N' }
    const answer = await post(`/v1/inboxes/${sender.inbox.id}/messages`, {
      to: [mailbox, { email: given }],
      replyTo: mailbox,
      subject: 'S',
      text: 'T',
    })
    const { raw, envelope } = await received(answer)
    assert.deepEqual(envelope, [written])
    assert.deepEqual(
      (answer.body.submission ?? answer.body).recipients.map(({ email }) => email),
      [written],
    )
    const read = ({ to, replyTo }: ReadMail) =>
      [...to, ...replyTo].map(({ email, name }) => [bare(email), name])
    await assertReadAs(raw, read, Array(2).fill([bare(written), 'N']))
  })

/** Readers differ: some remove the quotes of a local part, some decode the letters of a domain. */
function bare(email: string): string {
  const at = email.lastIndexOf('@')
  const quoted = /^"(.*)"$/s.exec(email.slice(0, at))
  const localPart = quoted ? quoted[1]!.replace(/\\(.)/g, '$1') : email.slice(0, at)
  return `${localPart}@${new URL(`http://${email.slice(at + 1)}`).hostname}`
}

test('check 39: a file’s stated type adds no file name and no structure', async (t) => {
  const png = 'iVBORw0KGgo='
  const cases: [contentType: string, read: string, contentId?: string][] = [
    ['image/png', 'image/png', 'logo@x'],
    ['image/png', 'image/png', '"a"(b)[c]\\'],
    ['image/png', 'image/png'],
    ['text/plain; charset=utf-16', 'text/plain'],
    ['text/plain; charset="x; y"', 'text/plain'],
    ['text/plain; name="evil.exe"', 'text/plain'],
    ["text/plain; filename*=utf-8''evil.exe", 'text/plain'],
    ['multipart/mixed; boundary=x', 'application/octet-stream'],
    ['message/partial; id=x', 'application/octet-stream'],
    ['text/html; boundary="=_x"', 'text/html'],
  ]
  for (const [contentType, wanted, contentId] of cases)
    await t.test(`a file of type ${contentType} ${contentId ?? ''} is written as ${wanted}`, async () => {
      const attachments = [{ filename: 'a.bin', contentType, content: png, ...(contentId && { contentId }) }]
      const body = {
        to: [{ email: 'a@far.test' }],
        subject: 'S',
        html: `<img src="cid:logo@x">`,
        attachments,
      }
      const { raw } = await received(await post(`/v1/inboxes/${sender.inbox.id}/messages`, body))
      const read = ({ attachments }: ReadMail) =>
        attachments.map(({ filename, contentType, contentId, content }) => [
          ...[filename, contentType, contentId, content.toString('base64')],
        ])
      await assertReadAs(raw, read, [['a.bin', wanted, contentId ?? null, png]])
    })
})

interface Shown extends Omit<Message, 'attachments'> {
  attachments: { id: string; scanState: string; contentId: string | null; disposition: string }[]
}

test('inline images, empty files and many files reach other parsers, our own inboxes and downloads', async () => {
  const { api } = await deployment.nodes[0]!.createCaller()
  const inbox = await api.createInbox()
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), randomBytes(500)])
  const files: { filename: string; contentType: string; content: Buffer; contentId?: string }[] = [
    { filename: 'logo.png', contentType: 'image/png', content: png, contentId: 'logo' },
    {
      filename: 'foot.gif',
      contentType: 'image/gif',
      content: randomBytes(80),
      contentId: 'foot.1@posthorn',
    },
    { filename: 'empty.txt', contentType: 'text/plain', content: Buffer.alloc(0) },
    { filename: 'bytes.bin', contentType: 'application/octet-stream', content: randomBytes(3000) },
    ...Array.from({ length: 96 }, (_, i) => ({
      filename: `${i}.txt`,
      contentType: 'text/plain',
      content: Buffer.from(`file ${i}`),
    })),
  ]
  const body = {
    to: [{ email: 'someone@far.test' }, { email: inbox.address }],
    subject: 'Images',
    text: 'See.',
    html: '<img src="cid:logo"><img src="cid:foot.1@posthorn">',
    attachments: files.map(({ content, ...file }) => ({ ...file, content: content.toString('base64') })),
  }
  const { message } = await api.want<{ message: Shown }>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: 'with-images',
    body,
  })
  const wanted = files.map(({ contentId = null, content }) => [contentId, content.toString('hex')])
  const byPlace = (all: (string | null)[][]) => all.map((one) => one.join(' ')).sort()
  const [copy] = await until('it to go out', () => {
    const copies = sink.copiesOf(message.internetMessageId)
    return copies.length > 0 ? copies : null
  })
  for (const reader of readers) {
    const { attachments, html } = await reader.read(copy!.raw)
    const seen = attachments.map(({ contentId, content }) => [contentId, content.toString('hex')])
    assert.deepEqual(byPlace(seen), byPlace(wanted), reader.name)
    assert.match(html, /<img src="cid:logo">/, reader.name)
  }
  const scanned = async (of: { id: string }) => {
    return await until('it to be scanned', async () => {
      const shown = await api.want<Shown>(`/v1/messages/${of.id}`)
      return shown.attachments.every(({ scanState }) => scanState === 'clean') ? shown : null
    })
  }
  const received = await until('it to arrive', async () => {
    return (await api.exported(inbox.id)).find(({ direction }) => direction === 'inbound')
  })
  for (const shown of [await scanned(message), await scanned(received)]) {
    const downloads = []
    for (const { id, contentId } of shown.attachments)
      downloads.push([
        contentId,
        (await api.bytes(`/v1/messages/${shown.id}/attachments/${id}`)).toString('hex'),
      ])
    assert.deepEqual(byPlace(downloads), byPlace(wanted), shown.direction)
    const inline = shown.attachments.filter(({ disposition }) => disposition === 'inline')
    assert.deepEqual(inline.map(({ contentId }) => contentId).sort(), ['foot.1@posthorn', 'logo'])
  }
})

const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 31)
const count = 30 * Number(process.env['FUZZ_FACTOR'] ?? 1)
const known = [
  { header: 'Subject: =?utf-8?q?hello=0D=0ABcc:_evil@evil.test?=\r\nFrom: a@far.test\r\n', from: '' },
  { header: 'Subject: no sender at all\r\n', from: '' },
]

test(`hostile 4: the thread of any received mail can be answered, and the answer leaves (seed ${seed})`, async (t) => {
  const node = deployment.nodes[0]!
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
  assert.match(body.message, /must be a message with an address to reply to$/)
}
