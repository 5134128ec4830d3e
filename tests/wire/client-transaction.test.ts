// Transactions of the SMTP client as transcripts: what goes over the wire, and what each recipient is told.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect, type SmtpConnection } from '../../src/smtp/client/client.ts'
import type { SendOptions, SendResult } from '../../src/smtp/client/transaction.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { play } from './client-script.ts'

const mail = Buffer.from('Subject: x\r\n\r\n.hi\r\n')
const size = mail.length

/** `delivered 250`, `refused 550 rcpt`, `untried`, …; one for each recipient. */
function told(result: SendResult): string[] {
  return result.recipients.map((one) =>
    'reply' in one ? `${one.outcome} ${one.reply.code} ${one.stage}` : one.outcome,
  )
}

function opening(extensions: string): string {
  const lines = ['mx.test', ...extensions.split(',').filter(Boolean)]
  const replies = lines.map((line, index) => `S: 250${index === lines.length - 1 ? ' ' : '-'}${line}`)
  return ['S: 220 mx.test', 'C: EHLO me.test', ...replies].join('\n')
}

async function open(context: TestContext, script: string) {
  const played = await play(context, script)
  return { connection: await reach(context, played.port), ended: played.ended }
}

async function reach(context: TestContext, port: number): Promise<SmtpConnection> {
  const opened = await connect({
    host: 'mx.test',
    address: '127.0.0.1',
    port,
    ehloName: 'me.test',
    tls: 'none',
    timeouts: { mailMs: 2000, rcptMs: 2000, dataStartMs: 2000, dataBlockMs: 2000, dataFinalMs: 2000 },
  })
  assert.ok('connection' in opened, JSON.stringify(opened))
  context.after(() => opened.connection.destroy())
  return opened.connection
}

function send(connection: SmtpConnection, to: string[], options: SendOptions = {}, message = mail) {
  return connection.send(envelopesTo(to), message, options)
}

/** A transaction each. */
function envelopesTo(to: string[]) {
  return to.map((address) => ({ from: 'a@x.test', to: address, utf8: false }))
}

interface Transcript {
  name: string
  extensions: string
  to: string[]
  script: string
  want: string[]
  fault?: string
  usable: 'usable' | 'over'
  options?: SendOptions
}

const transcripts: Transcript[] = [
  {
    name: 'PIPELINING sends MAIL, RCPT and DATA in one group, and the next ones behind the message',
    extensions: 'PIPELINING,SIZE 1000,8BITMIME',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test> SIZE=${size}
      C: RCPT TO:<u@b.test>
      C: DATA
      quiet
      S: 250 ok
      S: 251 ok
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      C: RSET
      C: MAIL FROM:<a@x.test> SIZE=${size}
      C: RCPT TO:<v@b.test>
      C: DATA
      quiet
      S: 250 2.0.0 kept
      S: 250 clean
      S: 250 ok
      S: 250 ok
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      quiet
      S: 250 2.0.0 kept`,
    want: ['delivered 250 message', 'delivered 250 message'],
    usable: 'usable',
  },
  {
    name: 'without PIPELINING every command waits for its reply',
    extensions: '',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      quiet
      S: 250 ok
      C: RCPT TO:<u@b.test>
      quiet
      S: 550 5.1.1 nobody
      C: RSET
      quiet
      S: 250 clean
      C: MAIL FROM:<a@x.test>
      quiet
      S: 250 ok
      C: RCPT TO:<v@b.test>
      quiet
      S: 250 ok
      C: DATA
      quiet
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      quiet
      S: 250 kept`,
    want: ['refused 550 rcpt', 'delivered 250 message'],
    usable: 'usable',
  },
  {
    name: 'check 29: each recipient has its own answer',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test', 'w@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 450 4.2.1 later
      S: 503 nobody to send it to
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: DATA
      S: 250 clean
      S: 250 ok
      S: 250 ok
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<w@b.test>
      C: DATA
      S: 451 4.3.0 not now
      S: 250 clean
      S: 250 ok
      S: 550-5.1.1 nobody
      S: 550 5.1.1 at all
      S: 503 nobody to send it to`,
    want: ['refused 450 rcpt', 'refused 451 message', 'refused 550 rcpt'],
    usable: 'usable',
  },
  {
    name: 'a lone dot ends DATA answered 354 though nobody was accepted',
    extensions: 'PIPELINING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 550 nobody
      S: 354 go
      C: .
      S: 250 kept, whatever`,
    want: ['refused 550 rcpt'],
    usable: 'usable',
  },
  {
    name: 'nobody accepted, DATA refused',
    extensions: 'PIPELINING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 550 nobody
      S: 554 no valid recipients`,
    want: ['refused 550 rcpt'],
    usable: 'usable',
  },
  {
    name: 'in lock-step nobody accepted means no DATA',
    extensions: '',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      S: 250 ok
      C: RCPT TO:<u@b.test>
      S: 550 nobody`,
    want: ['refused 550 rcpt'],
    usable: 'usable',
  },
  {
    name: 'check 29: MAIL refused answers this recipient, and the next is asked for',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 550 5.7.1 not you
      S: 503 no
      S: 503 no
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: DATA
      S: 250 clean
      S: 450 4.7.1 not now
      S: 503 no
      S: 503 no`,
    want: ['refused 550 mail', 'refused 450 mail'],
    usable: 'usable',
  },
  {
    name: 'MAIL refused and DATA answered 354 all the same: nothing is sent',
    extensions: 'PIPELINING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 550 not you
      S: 250 ok
      S: 354 go
      gone
      quiet`,
    want: ['refused 550 mail'],
    usable: 'over',
  },
  {
    name: 'check 29: DATA refused is the answer to the accepted',
    extensions: 'PIPELINING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      S: 452 4.3.1 full`,
    want: ['refused 452 data'],
    usable: 'usable',
  },
  {
    name: 'CHUNKING with PIPELINING sends everything in one group, and one transaction ahead',
    extensions: 'PIPELINING,CHUNKING',
    to: ['u@b.test', 'v@b.test', 'w@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: BDAT ${size} LAST
      C: Subject: x
      C:${' '}
      C: .hi
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: BDAT ${size} LAST
      C: Subject: x
      C:${' '}
      C: .hi
      quiet
      S: 250 ok
      S: 250 ok
      S: 250 2.0.0 kept
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<w@b.test>
      C: BDAT ${size} LAST
      C: Subject: x
      C:${' '}
      C: .hi
      quiet
      S: 250 clean
      S: 250 ok
      S: 550 nobody
      S: 503 nobody to send it to
      S: 250 clean
      S: 250 ok
      S: 250 ok
      S: 250 2.0.0 kept`,
    want: ['delivered 250 message', 'refused 550 rcpt', 'delivered 250 message'],
    usable: 'usable',
  },
  {
    name: 'CHUNKING alone sends the chunk when somebody was accepted',
    extensions: 'CHUNKING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      S: 250 ok
      C: RCPT TO:<u@b.test>
      S: 250 ok
      C: BDAT ${size} LAST
      C: Subject: x
      C:${' '}
      C: .hi
      S: 554 5.7.1 no`,
    want: ['refused 554 message'],
    usable: 'usable',
  },
  {
    name: 'a peer that announced CHUNKING and does not know BDAT is left: nothing it says further is an answer',
    extensions: 'PIPELINING,CHUNKING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: BDAT ${size} LAST
      C: Subject: x
      C:${' '}
      C: .hi
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: BDAT ${size} LAST
      C: Subject: x
      C:${' '}
      C: .hi
      S! 250 ok\\r\\n250 ok\\r\\n502 what\\r\\n500 what\\r\\n500 what\\r\\n500 what\\r\\n
      gone`,
    want: ['refused 502 message', 'unknown'],
    usable: 'over',
  },
  {
    name: 'mayFinish is asked before the final dot',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test'],
    options: { mayFinish: () => false },
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      S: 354 go
      gone`,
    want: ['abandoned', 'untried'],
    usable: 'over',
  },
  {
    name: 'mayFinish is asked before a whole group',
    extensions: 'PIPELINING,CHUNKING',
    to: ['u@b.test'],
    options: { mayFinish: () => false },
    script: `
      gone`,
    want: ['abandoned'],
    usable: 'over',
  },
  {
    name: 'check 30: lost after the dot is unknown, and who came next is untried',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test', 'w@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: DATA
      reset`,
    want: ['unknown', 'untried', 'untried'],
    fault: 'closed',
    usable: 'over',
  },
  {
    name: 'check 30: lost with two messages on the wire, both are unknown and no more',
    extensions: 'PIPELINING,CHUNKING',
    to: ['u@b.test', 'v@b.test', 'w@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: BDAT ${size} LAST
      C: Subject: x
      C:${' '}
      C: .hi
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: BDAT ${size} LAST
      C: Subject: x
      C:${' '}
      C: .hi
      S: 250 ok
      S: 250 ok
      reset`,
    want: ['unknown', 'unknown', 'untried'],
    fault: 'closed',
    usable: 'over',
  },
  {
    name: 'check 30: no reply to the dot in time is unknown',
    extensions: 'PIPELINING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      silence`,
    want: ['unknown'],
    fault: 'timeout',
    usable: 'over',
  },
  {
    name: 'check 30: garbage in reply to the dot is unknown',
    extensions: 'PIPELINING,CHUNKING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: BDAT ${size} LAST
      S: 250 ok
      S: 250 ok
      S: 250kept
      gone`,
    want: ['unknown'],
    fault: 'protocol',
    usable: 'over',
  },
  {
    name: 'lost before the dot is untried',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      close`,
    want: ['untried', 'untried'],
    fault: 'closed',
    usable: 'over',
  },
  {
    name: 'lost before the dot of the second, whose first has its answer: no fault of the route',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: DATA
      S: 250 kept
      S: 250 clean
      S: 250 ok
      S: 250 ok
      close`,
    want: ['delivered 250 message', 'untried'],
    usable: 'over',
  },
  {
    name: 'check 32: the message’s 250 before its dot is a lie',
    extensions: 'PIPELINING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S! 250 ok\\r\\n250 ok\\r\\n354 go\\r\\n250 kept\\r\\n
      gone`,
    want: ['untried'],
    fault: 'protocol',
    usable: 'over',
  },
  {
    name: 'check 32: the second message’s 250 before its dot is a lie',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: DATA
      S! 250 kept\\r\\n250 clean\\r\\n250 ok\\r\\n250 ok\\r\\n354 go\\r\\n250 kept\\r\\n
      gone`,
    want: ['delivered 250 message', 'untried'],
    usable: 'over',
  },
  {
    name: 'check 32: 250 in reply to DATA delivers nothing',
    extensions: 'PIPELINING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      S: 250 ok
      gone`,
    want: ['untried'],
    fault: 'protocol',
    usable: 'over',
  },
  ...['MAIL', 'RCPT'].map(
    (verb): Transcript => ({
      name: `check 32: 354 in reply to ${verb} delivers nothing`,
      extensions: 'PIPELINING',
      to: ['u@b.test'],
      script: `
        C: MAIL FROM:<a@x.test>
        C: RCPT TO:<u@b.test>
        C: DATA
        S: ${verb === 'MAIL' ? 354 : 250} ok
        S: ${verb === 'RCPT' ? 354 : 250} ok
        S: 354 go
        gone
        quiet`,
      want: ['untried'],
      fault: 'protocol',
      usable: 'over',
    }),
  ),
  {
    name: 'a refusal before the dot is the answer to the message',
    extensions: 'PIPELINING',
    to: ['u@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S! 250 ok\\r\\n250 ok\\r\\n354 go\\r\\n552 5.3.4 too big\\r\\n
      gone`,
    want: ['refused 552 message'],
    usable: 'over',
  },
  {
    name: 'a 421 to MAIL on a new connection is an answer, and a fault',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 421 4.7.0 not you, not now
      close`,
    want: ['refused 421 mail', 'untried'],
    fault: 'refused',
    usable: 'over',
  },
  {
    name: 'a 421 to RCPT answers that recipient alone, and the one begun behind it did not happen',
    extensions: 'PIPELINING,CHUNKING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      S: 250 ok
      S: 421 4.7.0 enough
      close`,
    want: ['refused 421 rcpt', 'untried'],
    fault: 'refused',
    usable: 'over',
  },
  {
    name: 'a 421 to the message is its answer, and a fault',
    extensions: 'PIPELINING,CHUNKING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      S: 250 ok
      S: 250 ok
      S: 421 4.3.2 closing
      close`,
    want: ['refused 421 message', 'untried'],
    fault: 'refused',
    usable: 'over',
  },
  {
    name: 'a 421 to the second MAIL speaks of the connection',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      C: DATA
      S: 250 ok
      S: 250 ok
      S: 354 go
      C: Subject: x
      C:${' '}
      C: ..hi
      C: .
      C: RSET
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<v@b.test>
      C: DATA
      S: 250 kept
      S: 421 4.3.2 one message for one connection
      close`,
    want: ['delivered 250 message', 'untried'],
    fault: 'refused',
    usable: 'over',
  },
  {
    name: 'who refuses and hangs up has answered: no fault of the route',
    extensions: 'PIPELINING',
    to: ['u@b.test', 'v@b.test'],
    script: `
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@b.test>
      S: 554 5.7.1 not you
      close`,
    want: ['refused 554 mail', 'untried'],
    usable: 'over',
  },
]

for (const { name, extensions, to, script, want, fault, usable, options } of transcripts) {
  test(name, async (context) => {
    const goodbye = usable === 'usable' ? 'C: QUIT\nS: 221 bye' : ''
    const { connection, ended } = await open(context, `${opening(extensions)}\n${script}\n${goodbye}`)
    const result = await send(connection, to, options)
    assert.deepEqual(told(result), want)
    assert.equal(result.fault?.kind, fault)
    assert.equal(connection.usable, usable === 'usable')
    await connection.quit()
    assert.equal(await ended, null)
  })
}

const refusedThenDelivered = `
  C: MAIL FROM:<a@x.test>
  C: RCPT TO:<u@b.test>
  C: DATA
  S: 250 ok
  S: 550 nobody
  S: 554 no valid recipients
  C: RSET
  C: MAIL FROM:<a@x.test>
  C: RCPT TO:<v@b.test>
  C: DATA
  S: 250 ok
  S: 250 ok
  S: 250 ok
  S: 354 go
  C: Subject: x
  C:${' '}
  C: ..hi
  C: .
  S: 250 kept
  C: MAIL FROM:<a@x.test>
  C: RCPT TO:<w@b.test>
  C: DATA
  S: 421 4.3.2 enough messages for one connection
  close`

test('a connection is used again: RSET after a refusal, none after a success, and its 421 blames nobody', async (context) => {
  const { connection, ended } = await open(context, `${opening('PIPELINING')}${refusedThenDelivered}`)
  assert.deepEqual(told(await send(connection, ['u@b.test'])), ['refused 550 rcpt'])
  assert.deepEqual(told(await send(connection, ['v@b.test'])), ['delivered 250 message'])
  const last = await send(connection, ['w@b.test'])
  assert.deepEqual(told(last), ['untried'])
  assert.deepEqual([last.fault?.kind, last.reply?.code], ['refused', 421])
  assert.equal(await ended, null)
})

test('a peer that says 421 or closes while idle makes the connection unusable', async (context) => {
  for (const farewell of ['S: 421 4.4.2 idle', 'close']) {
    const script = `${opening('')}\nC: MAIL FROM:<a@x.test>\nS: 450 later\n${farewell}\ngone`
    const { connection, ended } = await open(context, script)
    assert.deepEqual(told(await send(connection, ['u@b.test'])), ['refused 450 mail'])
    await until('the connection to be over', () => !connection.usable)
    const result = await send(connection, ['u@b.test'])
    assert.deepEqual(told(result), ['untried'])
    assert.equal(result.reply?.code, farewell === 'close' ? undefined : 421)
    assert.equal(await ended, null)
  }
})

test('a second transaction beside the first is not sent', async (context) => {
  const { connection } = await open(context, `${opening('PIPELINING')}\nsilence`)
  const first = send(connection, ['u@b.test'])
  assert.deepEqual(told(await send(connection, ['v@b.test'])), ['untried'])
  connection.destroy()
  assert.deepEqual(told(await first), ['untried'])
})

const unsendable: [
  name: string,
  extensions: string,
  from: string,
  to: string,
  utf8: 'utf8' | 'ascii',
  body: string,
  want: string,
  status: string,
][] = [
  [
    '8-bit content without 8BITMIME',
    '',
    'a@x.test',
    'u@b.test',
    'ascii',
    'grüß\r\n',
    'refused 554 mail',
    '5.6.3',
  ],
  [
    'SMTPUTF8 without the extension',
    '8BITMIME',
    'a@x.test',
    'ü@b.test',
    'utf8',
    'x\r\n',
    'refused 553 mail',
    '5.6.7',
  ],
  [
    'a message over SIZE',
    'SIZE 10',
    'a@x.test',
    'u@b.test',
    'ascii',
    'x'.repeat(11),
    'refused 552 mail',
    '5.3.4',
  ],
  [
    'a UTF-8 address in an ASCII envelope',
    'SMTPUTF8',
    'a@x.test',
    'ü@b.test',
    'ascii',
    'x',
    'refused 553 rcpt',
    '5.5.4',
  ],
  [
    'check 39: a line end in a recipient',
    '',
    'a@x.test',
    'u@b.test>\r\nDATA',
    'ascii',
    'x',
    'refused 553 rcpt',
    '5.5.4',
  ],
  [
    'check 39: a line end in the sender',
    '',
    'a@x.test>\r\nRSET',
    'u@b.test',
    'ascii',
    'x',
    'refused 553 mail',
    '5.5.4',
  ],
  [
    'check 39: a parameter in a recipient',
    '',
    'a@x.test',
    'u@b.test> NOTIFY=NEVER',
    'ascii',
    'x',
    'refused 553 rcpt',
    '5.5.4',
  ],
  ['the null recipient', '', 'a@x.test', '', 'ascii', 'x', 'refused 553 rcpt', '5.5.4'],
]

for (const [name, extensions, from, to, utf8, body, want, status] of unsendable) {
  test(`nothing reaches the wire: ${name}`, async (context) => {
    const { connection, ended } = await open(context, `${opening(extensions)}\nC: QUIT\nS: 221 bye`)
    const result = await connection.send([{ from, to, utf8: utf8 === 'utf8' }], Buffer.from(body))
    assert.deepEqual(told(result), [want])
    const [one] = result.recipients
    assert.ok(one && 'reply' in one)
    assert.equal(one.reply.enhanced, status)
    await connection.quit()
    assert.equal(await ended, null)
  })
}

test('parameters of MAIL: SIZE, BODY, SMTPUTF8, the null path, a quoted local part', async (context) => {
  const script = `${opening('PIPELINING,8BITMIME,SMTPUTF8,SIZE')}
    C: MAIL FROM:<> SIZE=8 BODY=8BITMIME SMTPUTF8
    C: RCPT TO:<"a > b"@b.test>
    C: DATA
    S: 550 no
    S: 550 no
    S: 550 no
    C: RSET
    C: MAIL FROM:<> SIZE=8 BODY=8BITMIME SMTPUTF8
    C: RCPT TO:<ü@b.test>
    C: DATA
    S: 250 clean
    S: 550 no
    S: 550 no
    S: 550 no`
  const { connection, ended } = await open(context, script)
  const envelopes = ['"a > b"@b.test', 'ü@b.test'].map((to) => ({ from: '', to, utf8: true }))
  const result = await connection.send(envelopes, Buffer.from('grüß\r\n'))
  assert.deepEqual(told(result), ['refused 550 mail', 'refused 550 mail'])
  assert.equal(await ended, null)
})

const large = Buffer.from(`${'0123456789'.repeat(7)}\r\n`.repeat(40_000))

for (const extensions of [[], ['PIPELINING'], ['PIPELINING', 'CHUNKING'], ['CHUNKING']]) {
  test(`a large message arrives byte for byte (${extensions.join(' ') || 'no extension'})`, async (context) => {
    const sink = await startSink(context, { extensions })
    const connection = await reach(context, sink.port)
    let asked = 0
    const mayFinish = () => ++asked > 0
    const result = await send(connection, ['u@b.test', 'v@b.test'], { mayFinish }, large)
    assert.deepEqual(told(result), ['delivered 250 message', 'delivered 250 message'])
    assert.equal(asked, 2)
    assert.equal(sink.copies.length, 2)
    for (const { raw } of sink.copies) assert.ok(raw.equals(large))
    await connection.quit()
  })
}

test('mayFinish ends a large message before its last bytes', async (context) => {
  for (const extensions of [['PIPELINING'], ['PIPELINING', 'CHUNKING']]) {
    const sink = await startSink(context, { extensions })
    const connection = await reach(context, sink.port)
    const result = await send(connection, ['u@b.test'], { mayFinish: () => false }, large)
    assert.deepEqual(told(result), ['abandoned'])
    await until('the sink to see the end', () => sink.open === 0)
    assert.equal(sink.copies.length, 0)
  }
})

test('what a message that is given up has on the wire is dropped, not sent on', async (context) => {
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

test('a peer that does not read is a fault in time', async (context) => {
  const { connection } = await open(
    context,
    `${opening('CHUNKING')}
    C: MAIL FROM:<a@x.test>
    S: 250 ok
    C: RCPT TO:<u@b.test>
    S: 250 ok
    deaf
    silence`,
  )
  const result = await send(connection, ['u@b.test'], {}, Buffer.alloc(64 << 20, 'x'))
  assert.deepEqual(told(result), ['untried'])
  assert.equal(result.fault?.kind, 'timeout')
})
