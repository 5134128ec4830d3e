// Tests the SMTP client's transactions as transcripts: the bytes on the wire, and the outcome of each recipient.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect, type SmtpConnection } from '../../src/smtp/client/client.ts'
import type { RecipientEnvelope, SendOptions, SendResult } from '../../src/smtp/client/transaction.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { play } from './client-script.ts'

const mail = Buffer.from('Subject: x\r\n\r\n.hi\r\n')
const size = mail.length
const [u, v, w] = ['u@b.test', 'v@b.test', 'w@b.test'] as const

/** Returns one text per recipient, such as `delivered 250 2.0.0 message`, `refused 550 rcpt` or `untried`. */
function outcomesOf(result: SendResult): string[] {
  return result.recipients.map((one) => {
    if (!('reply' in one)) return one.outcome
    const { code, enhanced } = one.reply
    return [one.outcome, code, enhanced, one.stage].filter((part) => part !== null).join(' ')
  })
}

/** Plays the greeting, then `script`. Its `C:` and `S:` entries may contain several lines, separated by ` | `. */
async function open(context: TestContext, extensions: string, script: string[]) {
  const hello = ['mx.test', ...extensions.split(',').filter(Boolean)]
  const replies = hello.map((line, index) => `S: 250${index === hello.length - 1 ? ' ' : '-'}${line}`)
  const steps = script.map((step) => step.replaceAll(' | ', `\n${step.slice(0, 2)} `))
  const played = await play(context, ['S: 220 mx.test', 'C: EHLO me.test', ...replies, ...steps].join('\n'))
  return { connection: await reach(context, played.port), ended: played.ended }
}

async function reach(context: TestContext, port: number, timeoutMs = 2_000): Promise<SmtpConnection> {
  const opened = await connect({
    host: 'mx.test',
    address: '127.0.0.1',
    port,
    ehloName: 'me.test',
    tls: 'none',
    timeouts: {
      mailMs: timeoutMs,
      rcptMs: timeoutMs,
      dataStartMs: timeoutMs,
      dataBlockMs: timeoutMs,
      dataFinalMs: timeoutMs,
    },
  })
  assert.ok('connection' in opened, JSON.stringify(opened))
  context.after(() => opened.connection.destroy())
  return opened.connection
}

/** Sends a message to each of `to`, in separate transactions. */
function send(connection: SmtpConnection, to: string[], options: SendOptions = {}, message = mail) {
  const envelopes = to.map((address) => ({ from: 'a@x.test', to: address, needsUtf8: false }))
  return connection.send(envelopes, message, options)
}

const mailFrom = 'C: MAIL FROM:<a@x.test>'
const accepted = [mailFrom, 'S: 250 ok', 'C: RCPT TO:<u@b.test>', 'S: 250 ok']
const go = 'S: 250 ok | 250 ok | 354 go'
const dotted = 'C: Subject: x |  | ..hi | .'
const chunk = `BDAT ${size} LAST | Subject: x |  | .hi`
// RFC 2920 3.1: the next transaction begins in the group that contains the end of a message.
const dataAhead = [withData(u), go, dotted, 'C: RSET', withData(v)]
const chunkAhead = [withChunk(u), 'C: RSET', withChunk(v)]

function envelope(to: string, parameters = ''): string {
  return `${mailFrom}${parameters} | RCPT TO:<${to}>`
}

function withData(to: string, parameters = ''): string {
  return `${envelope(to, parameters)} | DATA`
}

function withChunk(to: string): string {
  return `${envelope(to)} | ${chunk}`
}

/** The client sends a command, and nothing more before the reply. */
function alone(command: string, reply: string): string {
  return `C: ${command}\nquiet\nS: ${reply}`
}

interface Row {
  /** Extensions the server offers, separated by commas. Default: PIPELINING. */
  extensions?: string
  /** The conversation after the reply to EHLO. QUIT follows if the connection is still usable. */
  script: string[]
  from?: string
  needsUtf8?: boolean
  message?: Buffer
  options?: SendOptions
  /** The outcome of each transaction by its recipient, in sending order. */
  want: Record<string, string>
  /** The connection's state: `usable` (default), `over` without a fault, or the fault. */
  after?: 'usable' | 'over' | NonNullable<SendResult['fault']>['kind']
}

const transcripts: Record<string, Row> = {
  'PIPELINING sends MAIL, RCPT and DATA in one group, and the next group after the message': {
    extensions: 'PIPELINING,SIZE 1000,8BITMIME',
    script: [
      withData(u, ` SIZE=${size}`),
      'quiet',
      'S: 250 ok | 251 ok | 354 go',
      dotted,
      'C: RSET',
      withData(v, ` SIZE=${size}`),
      'quiet',
      'S: 250 2.0.0 kept | 250 clean | 250 ok | 250 ok | 354 go',
      dotted,
      'quiet',
      'S: 250 2.0.0 kept',
    ],
    want: { [u]: 'delivered 250 2.0.0 message', [v]: 'delivered 250 2.0.0 message' },
  },
  'without PIPELINING every command waits for its reply': {
    extensions: '',
    script: [
      alone('MAIL FROM:<a@x.test>', '250 ok'),
      alone('RCPT TO:<u@b.test>', '550 5.1.1 nobody'),
      alone('RSET', '250 clean'),
      alone('MAIL FROM:<a@x.test>', '250 ok'),
      alone('RCPT TO:<v@b.test>', '250 ok'),
      alone('DATA', '354 go'),
      dotted,
      'quiet',
      'S: 250 kept',
    ],
    want: { [u]: 'refused 550 5.1.1 rcpt', [v]: 'delivered 250 message' },
  },
  'check 29: each recipient has its own answer': {
    script: [
      withData(u),
      'S: 250 ok | 450 4.2.1 later | 503 nobody to send it to',
      'C: RSET',
      withData(v),
      'S: 250 clean | 250 ok | 250 ok | 354 go',
      dotted,
      'C: RSET',
      withData(w),
      'S: 451 4.3.0 not now | 250 clean | 250 ok',
      'S: 550-5.1.1 nobody | 550 5.1.1 at all | 503 nobody to send it to',
    ],
    want: { [u]: 'refused 450 4.2.1 rcpt', [v]: 'refused 451 4.3.0 message', [w]: 'refused 550 5.1.1 rcpt' },
  },
  'a lone dot ends a DATA that got 354 without an accepted recipient': {
    script: [withData(u), 'S: 250 ok | 550 nobody | 354 go', 'C: .', 'S: 250 kept, whatever'],
    want: { [u]: 'refused 550 rcpt' },
  },
  'a refused DATA ends a transaction without an accepted recipient': {
    script: [withData(u), 'S: 250 ok | 550 nobody | 554 no valid recipients'],
    want: { [u]: 'refused 550 rcpt' },
  },
  'in lock-step no DATA follows without an accepted recipient': {
    extensions: '',
    script: [mailFrom, 'S: 250 ok', 'C: RCPT TO:<u@b.test>', 'S: 550 nobody'],
    want: { [u]: 'refused 550 rcpt' },
  },
  'check 29: a refused MAIL refuses its recipient, and the next one is tried': {
    script: [
      withData(u),
      'S: 550 5.7.1 not you | 503 no | 503 no',
      'C: RSET',
      withData(v),
      'S: 250 clean | 450 4.7.1 not now | 503 no | 503 no',
    ],
    want: { [u]: 'refused 550 5.7.1 mail', [v]: 'refused 450 4.7.1 mail' },
  },
  'a refused MAIL sends no content, even if DATA gets 354': {
    script: [withData(u), 'S: 550 not you | 250 ok | 354 go', 'gone', 'quiet'],
    want: { [u]: 'refused 550 mail' },
    after: 'over',
  },
  'check 29: a refused DATA refuses the accepted recipients': {
    script: [withData(u), 'S: 250 ok | 250 ok | 452 4.3.1 full'],
    want: { [u]: 'refused 452 4.3.1 data' },
  },
  'CHUNKING with PIPELINING sends everything in one group, and one transaction ahead': {
    extensions: 'PIPELINING,CHUNKING',
    script: [
      ...chunkAhead,
      'quiet',
      'S: 250 ok | 250 ok | 250 2.0.0 kept',
      'C: RSET',
      withChunk(w),
      'quiet',
      'S: 250 clean | 250 ok | 550 nobody | 503 nobody to send it to',
      'S: 250 clean | 250 ok | 250 ok | 250 2.0.0 kept',
    ],
    want: { [u]: 'delivered 250 2.0.0 message', [v]: 'refused 550 rcpt', [w]: 'delivered 250 2.0.0 message' },
  },
  'CHUNKING alone sends the chunk once a recipient was accepted': {
    extensions: 'CHUNKING',
    script: [...accepted, `C: ${chunk}`, 'S: 554 5.7.1 no'],
    want: { [u]: 'refused 554 5.7.1 message' },
  },
  'a peer that announced CHUNKING and refuses BDAT is left, and its later replies are ignored': {
    extensions: 'PIPELINING,CHUNKING',
    script: [
      ...chunkAhead,
      'S! 250 ok\\r\\n250 ok\\r\\n502 what\\r\\n500 what\\r\\n500 what\\r\\n500 what\\r\\n',
      'gone',
    ],
    want: { [u]: 'refused 502 message', [v]: 'unknown' },
    after: 'over',
  },
  'mayFinish is called before the final dot': {
    script: [withData(u), go, 'gone'],
    options: { mayFinish: () => false },
    want: { [u]: 'abandoned', [v]: 'untried' },
    after: 'over',
  },
  'mayFinish is called before a whole group': {
    extensions: 'PIPELINING,CHUNKING',
    script: ['gone'],
    options: { mayFinish: () => false },
    want: { [u]: 'abandoned' },
    after: 'over',
  },
  'check 30: a connection lost after the dot leaves its recipient unknown, and the next one untried': {
    script: [...dataAhead, 'reset'],
    want: { [u]: 'unknown', [v]: 'untried', [w]: 'untried' },
    after: 'closed',
  },
  'check 30: a connection lost with two messages on the wire leaves only both unknown': {
    extensions: 'PIPELINING,CHUNKING',
    script: [...chunkAhead, 'S: 250 ok | 250 ok', 'reset'],
    want: { [u]: 'unknown', [v]: 'unknown', [w]: 'untried' },
    after: 'closed',
  },
  'check 30: a dot without a reply in time leaves its recipient unknown': {
    script: [withData(u), go, dotted, 'silence'],
    want: { [u]: 'unknown' },
    after: 'timeout',
  },
  'check 30: garbage in reply to the dot leaves its recipient unknown': {
    extensions: 'PIPELINING,CHUNKING',
    script: [`${envelope(u)} | BDAT ${size} LAST`, 'S: 250 ok | 250 ok | 250kept', 'gone'],
    want: { [u]: 'unknown' },
    after: 'protocol',
  },
  'a connection lost before the dot leaves its recipient untried': {
    script: [withData(u), 'S: 250 ok | 250 ok', 'close'],
    want: { [u]: 'untried', [v]: 'untried' },
    after: 'closed',
  },
  'a connection lost after its first message’s answer is no fault of the route': {
    script: [...dataAhead, 'S: 250 kept | 250 clean | 250 ok | 250 ok', 'close'],
    want: { [u]: 'delivered 250 message', [v]: 'untried' },
    after: 'over',
  },
  'check 32: the message’s 250 before its dot is a lie': {
    script: [withData(u), 'S! 250 ok\\r\\n250 ok\\r\\n354 go\\r\\n250 kept\\r\\n', 'gone'],
    want: { [u]: 'untried' },
    after: 'protocol',
  },
  'check 32: the second message’s 250 before its dot is a lie': {
    script: [
      ...dataAhead,
      'S! 250 kept\\r\\n250 clean\\r\\n250 ok\\r\\n250 ok\\r\\n354 go\\r\\n250 kept\\r\\n',
      'gone',
    ],
    want: { [u]: 'delivered 250 message', [v]: 'untried' },
    after: 'over',
  },
  'check 32: 250 in reply to DATA delivers nothing': {
    script: [withData(u), 'S: 250 ok | 250 ok | 250 ok', 'gone'],
    want: { [u]: 'untried' },
    after: 'protocol',
  },
  'check 32: 354 in reply to MAIL delivers nothing': {
    script: [withData(u), 'S: 354 ok | 250 ok | 354 go', 'gone', 'quiet'],
    want: { [u]: 'untried' },
    after: 'protocol',
  },
  'check 32: 354 in reply to RCPT delivers nothing': {
    script: [withData(u), 'S: 250 ok | 354 ok | 354 go', 'gone', 'quiet'],
    want: { [u]: 'untried' },
    after: 'protocol',
  },
  'a refusal before the dot counts for the message': {
    script: [withData(u), 'S! 250 ok\\r\\n250 ok\\r\\n354 go\\r\\n552 5.3.4 too big\\r\\n', 'gone'],
    want: { [u]: 'refused 552 5.3.4 message' },
    after: 'over',
  },
  'a 421 to MAIL on a new connection is a refusal, and a fault': {
    script: [withData(u), 'S: 421 4.7.0 not you, not now', 'close'],
    want: { [u]: 'refused 421 4.7.0 mail', [v]: 'untried' },
    after: 'refused',
  },
  'a 421 to RCPT refuses that recipient alone, and the next one is untried': {
    extensions: 'PIPELINING,CHUNKING',
    script: [envelope(u), 'S: 250 ok | 421 4.7.0 enough', 'close'],
    want: { [u]: 'refused 421 4.7.0 rcpt', [v]: 'untried' },
    after: 'refused',
  },
  'a 421 to the message refuses it, and is a fault': {
    extensions: 'PIPELINING,CHUNKING',
    script: [envelope(u), 'S: 250 ok | 250 ok | 421 4.3.2 closing', 'close'],
    want: { [u]: 'refused 421 4.3.2 message', [v]: 'untried' },
    after: 'refused',
  },
  'a 421 to the second MAIL concerns the connection': {
    script: [...dataAhead, 'S: 250 kept | 421 4.3.2 one message for one connection', 'close'],
    want: { [u]: 'delivered 250 message', [v]: 'untried' },
    after: 'refused',
  },
  'a refusal before a hang-up counts, without a fault of the route': {
    script: [envelope(u), 'S: 554 5.7.1 not you', 'close'],
    want: { [u]: 'refused 554 5.7.1 mail', [v]: 'untried' },
    after: 'over',
  },
  'MAIL carries SIZE, BODY, SMTPUTF8 and the null path, RCPT a quoted local part': {
    extensions: 'PIPELINING,8BITMIME,SMTPUTF8,SIZE',
    script: [
      'C: MAIL FROM:<> SIZE=8 BODY=8BITMIME SMTPUTF8 | RCPT TO:<"a > b"@b.test> | DATA',
      'S: 550 no | 550 no | 550 no',
      'C: RSET | MAIL FROM:<> SIZE=8 BODY=8BITMIME SMTPUTF8 | RCPT TO:<ü@b.test> | DATA',
      'S: 250 clean | 550 no | 550 no | 550 no',
    ],
    from: '',
    needsUtf8: true,
    message: Buffer.from('grüß\r\n'),
    want: { '"a > b"@b.test': 'refused 550 mail', 'ü@b.test': 'refused 550 mail' },
  },
}

type Unsendable = [
  name: string,
  extensions: string,
  given: Partial<RecipientEnvelope>,
  want: string,
  body?: string,
]

/** The client refuses these itself. */
const unsendable: Unsendable[] = [
  ['8-bit content without 8BITMIME', '', {}, 'refused 554 5.6.3 mail', 'grüß\r\n'],
  [
    'SMTPUTF8 without the extension',
    '8BITMIME',
    { to: 'ü@b.test', needsUtf8: true },
    'refused 553 5.6.7 mail',
  ],
  ['a message over SIZE', 'SIZE 10', {}, 'refused 552 5.3.4 mail', 'x'.repeat(11)],
  ['a UTF-8 address in an ASCII envelope', 'SMTPUTF8', { to: 'ü@b.test' }, 'refused 553 5.5.4 rcpt'],
  ['check 39: a line end in a recipient', '', { to: 'u@b.test>\r\nDATA' }, 'refused 553 5.5.4 rcpt'],
  ['check 39: a line end in the sender', '', { from: 'a@x.test>\r\nRSET' }, 'refused 553 5.5.4 mail'],
  ['check 39: a parameter in a recipient', '', { to: 'u@b.test> NOTIFY=NEVER' }, 'refused 553 5.5.4 rcpt'],
  ['the null recipient', '', { to: '' }, 'refused 553 5.5.4 rcpt'],
]

const refusals = unsendable.map(([what, extensions, given, outcome, body = 'x\r\n']): [string, Row] => {
  const { from, to = u, needsUtf8 } = given
  const row = { extensions, script: [], from, needsUtf8, message: Buffer.from(body), want: { [to]: outcome } }
  return [`nothing reaches the wire: ${what}`, row]
})

for (const [name, row] of [...Object.entries(transcripts), ...refusals]) {
  test(name, async (context) => {
    const { extensions = 'PIPELINING', from = 'a@x.test', needsUtf8 = false, after = 'usable' } = row
    const goodbye = after === 'usable' ? ['C: QUIT', 'S: 221 bye'] : []
    const { connection, ended } = await open(context, extensions, [...row.script, ...goodbye])
    const envelopes = Object.keys(row.want).map((to) => ({ from, to, needsUtf8 }))
    const result = await connection.send(envelopes, row.message ?? mail, row.options ?? {})
    assert.deepEqual(outcomesOf(result), Object.values(row.want))
    assert.equal(result.fault?.kind, after === 'usable' || after === 'over' ? undefined : after)
    assert.equal(connection.isUsable, after === 'usable')
    await connection.quit()
    assert.equal(await ended, null)
  })
}

test('a reused connection sends RSET after a refusal only, and a 421 blames no recipient', async (context) => {
  const refused = [withData(u), 'S: 250 ok | 550 nobody | 554 no valid recipients', 'C: RSET']
  const delivered = [withData(v), 'S: 250 ok', go, dotted, 'S: 250 kept']
  const sent = [withData(w), 'S: 421 4.3.2 enough messages for one connection', 'close']
  const { connection, ended } = await open(context, 'PIPELINING', [...refused, ...delivered, ...sent])
  assert.deepEqual(outcomesOf(await send(connection, [u])), ['refused 550 rcpt'])
  assert.deepEqual(outcomesOf(await send(connection, [v])), ['delivered 250 message'])
  const last = await send(connection, [w])
  assert.deepEqual(outcomesOf(last), ['untried'])
  assert.deepEqual([last.fault?.kind, last.reply?.code], ['refused', 421])
  assert.equal(await ended, null)
})

test('a peer that says 421 or closes while idle makes the connection unusable', async (context) => {
  for (const farewell of ['S: 421 4.4.2 idle', 'close']) {
    const { connection, ended } = await open(context, '', [mailFrom, 'S: 450 later', farewell, 'gone'])
    assert.deepEqual(outcomesOf(await send(connection, [u])), ['refused 450 mail'])
    await until('the connection to be over', () => !connection.isUsable)
    const result = await send(connection, [u])
    assert.deepEqual(outcomesOf(result), ['untried'])
    assert.equal(result.reply?.code, farewell === 'close' ? undefined : 421)
    assert.equal(await ended, null)
  }
})

test('a second transaction is not sent while the first is under way', async (context) => {
  const { connection } = await open(context, 'PIPELINING', ['silence'])
  const first = send(connection, [u])
  assert.deepEqual(outcomesOf(await send(connection, [v])), ['untried'])
  connection.destroy()
  assert.deepEqual(outcomesOf(await first), ['untried'])
})

const large = Buffer.from(`${'0123456789'.repeat(7)}\r\n`.repeat(40_000))

for (const extensions of [[], ['PIPELINING'], ['PIPELINING', 'CHUNKING'], ['CHUNKING']]) {
  test(`a large message arrives byte for byte (${extensions.join(' ') || 'no extension'})`, async (context) => {
    const sink = await startSink(context, { extensions })
    const connection = await reach(context, sink.port, 60_000)
    let asked = 0
    const mayFinish = () => ++asked > 0
    const result = await send(connection, [u, v], { mayFinish }, large)
    assert.deepEqual(outcomesOf(result), ['delivered 250 2.0.0 message', 'delivered 250 2.0.0 message'])
    assert.equal(asked, 2)
    assert.equal(sink.copies.length, 2)
    for (const { raw } of sink.copies) assert.ok(raw.equals(large))
    await connection.quit()
  })
}

test('mayFinish ends a large message before its last bytes', async (context) => {
  for (const extensions of [['PIPELINING'], ['PIPELINING', 'CHUNKING']]) {
    const sink = await startSink(context, { extensions })
    const connection = await reach(context, sink.port, 60_000)
    const result = await send(connection, [u], { mayFinish: () => false }, large)
    assert.deepEqual(outcomesOf(result), ['abandoned'])
    await until('the sink to see the end', () => sink.open === 0)
    assert.equal(sink.copies.length, 0)
  }
})

test('an abandoned message’s bytes on the wire are dropped', async (context) => {
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<string>()
  const server = createServer((socket) => {
    socket.on('error', (error: NodeJS.ErrnoException) => ended.resolve(error.code ?? ''))
    socket.on('end', () => ended.resolve('end'))
    socket.on('data', (bytes) => {
      if (bytes.includes('MAIL')) begun.resolve()
      else socket.write('250 mx.test\r\n')
    })
    socket.write('220 mx.test\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => server.close())
  const connection = await reach(context, (server.address() as AddressInfo).port)
  const sending = send(connection, ['a@y.test'])
  await begun.promise
  connection.destroy()
  assert.equal((await sending).fault?.kind, 'closed')
  assert.equal(await ended.promise, 'ECONNRESET')
})

test('a peer that does not read is reported as a fault in time', async (context) => {
  const { connection } = await open(context, 'CHUNKING', [...accepted, 'deaf', 'silence'])
  const result = await send(connection, [u], {}, Buffer.alloc(64 << 20, 'x'))
  assert.deepEqual(outcomesOf(result), ['untried'])
  assert.equal(result.fault?.kind, 'timeout')
})
