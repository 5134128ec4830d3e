// Holds the same conversations with npm's smtp-server: if both follow the RFCs, both must answer alike.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createTransport } from 'nodemailer'
import { SMTPServer } from 'smtp-server'
import { startMx } from './mx.ts'
import { Talk } from './talk.ts'

interface Side {
  port: number
  messages: () => Buffer[]
}

async function peer(t: TestContext): Promise<Side> {
  const messages: Buffer[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    size: 100_000,
    onRcptTo({ address }, _session, callback) {
      const refusal = Object.assign(new Error('No such mailbox'), { responseCode: 550 })
      callback(address.startsWith('unknown') ? refusal : null)
    },
    onData(stream, _session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        messages.push(Buffer.concat(chunks))
        callback()
      })
    },
  })
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  t.after(() => new Promise<void>((resolve) => server.close(() => resolve())))
  return { port: (server.server.address() as AddressInfo).port, messages: () => messages }
}

async function ours(t: TestContext): Promise<Side> {
  const { port, recorder } = await startMx(t, { maxRecipients: 100 })
  return { port, messages: () => recorder.got.map(({ content }) => content) }
}

/** Returns the reply codes. Each entry of the script is one write. */
async function codes(t: TestContext, { port }: Side, script: string[]): Promise<string[]> {
  const talk = await Talk.connect(t, port)
  const heard = [(await talk.reply())!.slice(0, 3)]
  for (const text of script) {
    talk.write(`${text}\r\n`)
    // A group of MAIL and RCPT gets one reply per line. A message gets one reply.
    const replies = /^(MAIL|RCPT)/.test(text) ? text.split('\r\n').length : 1
    for (let i = 0; i < replies; i++) heard.push((await talk.reply())?.slice(0, 3) ?? 'closed')
  }
  talk.destroy()
  return heard
}

const envelope = ['EHLO client.test', 'MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>']
const scripts: [string, string[]][] = [
  ['a message', [...envelope, 'DATA', 'Subject: x\r\n\r\nbody\r\n.', 'QUIT']],
  ['a message by HELO', ['HELO client.test', ...envelope.slice(1), 'DATA', 'x\r\n.', 'QUIT']],
  // A single dot before other characters is missing here, because smtp-server keeps it, against RFC 5321 4.5.2.
  ['dot-stuffing', [...envelope, 'DATA', '..\r\n..a\r\n...\r\n\r\n.', 'QUIT']],
  ['two messages', [...envelope, 'DATA', 'one\r\n.', ...envelope.slice(1), 'DATA', 'two\r\n.']],
  ['a pipelined envelope', ['EHLO client.test', envelope.slice(1).join('\r\n'), 'DATA', 'x\r\n.', 'QUIT']],
  ['the null sender', ['EHLO client.test', 'MAIL FROM:<>', 'RCPT TO:<u@our.test>', 'DATA', 'x\r\n.']],
  ['parameters', ['EHLO client.test', 'MAIL FROM:<a@x.test> SIZE=100 BODY=8BITMIME', 'RSET', 'NOOP']],
  ['too large, announced', ['EHLO client.test', 'MAIL FROM:<a@x.test> SIZE=100001', 'QUIT']],
  ['an unknown mailbox among known ones', [...envelope, 'RCPT TO:<unknown@our.test>', 'DATA', 'x\r\n.']],
  [
    'commands out of order',
    ['EHLO client.test', 'RCPT TO:<u@our.test>', 'DATA', ...envelope.slice(1), 'MAIL FROM:<b@x>'],
  ],
  ['RSET', [...envelope, 'RSET', 'RCPT TO:<u@our.test>', 'DATA']],
  ['EHLO again', [...envelope, 'EHLO again.test', 'DATA']],
  [
    'malformed paths',
    ['EHLO client.test', 'MAIL FROM:', 'MAIL FROM:<a@x.test> SIZE=x', 'MAIL TO:<a@x.test>'],
  ],
  ['VRFY', ['EHLO client.test', 'VRFY u']],
  ['unknown commands', ['EHLO client.test', 'WHAT', 'NOOP']],
]

for (const [name, script] of scripts) {
  test(`the server agrees with smtp-server: ${name}`, async (t) => {
    const sides = [await ours(t), await peer(t)] as const
    const [left, right] = [await codes(t, sides[0], script), await codes(t, sides[1], script)]
    assert.deepEqual(left, right)
    assert.deepEqual(sides[0].messages(), sides[1].messages())
  })
}

test('nodemailer delivers the same bytes to both servers', async (t) => {
  const sides = [await ours(t), await peer(t)] as const
  for (const { port } of sides) {
    const transport = createTransport({ host: '127.0.0.1', port, tls: { rejectUnauthorized: false } })
    const raw = 'From: a@x.test\r\nSubject: =?utf-8?q?x?=\r\n\r\n.dot\r\n..\r\nümlaut\r\n'
    const { accepted, rejected } = await transport.sendMail({
      envelope: { from: 'a@x.test', to: ['u@our.test', 'unknown@our.test'] },
      raw,
    })
    assert.deepEqual([accepted, rejected], [['u@our.test'], ['unknown@our.test']])
    transport.close()
  }
  assert.equal(sides[0].messages().length, 1)
  assert.deepEqual(sides[0].messages(), sides[1].messages())
})
