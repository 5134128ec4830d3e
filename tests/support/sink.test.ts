// Tests the harness itself: the sink counts exactly the bytes that the sender sends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTransport } from 'nodemailer'
import { startSink } from './sink.ts'
import { sendMail } from './smtp-sender.ts'
import { until } from './until.ts'

const mail = (text: string) => ({
  from: 'a@sender.test',
  to: 'b@sink.test',
  raw: Buffer.from(`Message-ID: <1@x>\r\nSubject: s\r\n\r\n${text}`, 'latin1'),
})

for (const text of [
  'plain\r\n',
  '.\r\n',
  '..two\r\n.one\r\n\r\n.\r\n',
  'bare\n.\nlf\n.x\r\n',
  'bare\r.\r\n',
  '\r\n',
])
  test(`the sink keeps the bytes of ${JSON.stringify(text)}`, async (t) => {
    const sink = await startSink(t)
    const sent = await sendMail(sink, mail(text))
    assert.equal(sent.outcome, 'accepted', sent.reply)
    assert.equal(sink.copies.length, 1)
    assert.deepEqual(sink.copies[0]!.raw.toString('latin1'), mail(text).raw.toString('latin1'))
    assert.equal(sink.copies[0]!.messageId, '<1@x>')
    assert.equal(sink.copies[0]!.recipient, 'b@sink.test')
  })

test('the sink refuses, cuts and holds mail by its rule', async (t) => {
  const sink = await startSink(t)
  sink.rule = ({ stage }) => (stage === 'rcpt' ? '550 5.1.1 nobody here' : null)
  assert.deepEqual(pick(await sendMail(sink, mail('x\r\n'))), ['refused', 'rcpt', '550 5.1.1 nobody here'])
  sink.rule = ({ stage }) => (stage === 'message' ? 'cut' : null)
  assert.deepEqual(pick(await sendMail(sink, mail('x\r\n'))), ['lost', 'message', '354 go ahead'])
  sink.rule = ({ stage }) => (stage === 'mail' ? new Promise(() => {}) : null)
  const held = await sendMail(sink, mail('x\r\n'), { timeoutMs: 100 })
  assert.deepEqual(pick(held).slice(0, 2), ['lost', 'mail'])
  assert.equal(sink.copies.length, 0)
  assert.equal(sink.connections, 3)
  await until('the connections to close', () => sink.open === 0)
})

test('the sink accepts several messages a connection from nodemailer, and a copy for each recipient', async (t) => {
  const sink = await startSink(t)
  const transport = createTransport({ host: sink.host, port: sink.port, pool: true, maxConnections: 1 })
  for (const number of [1, 2, 3])
    await transport.sendMail({
      from: 'a@x.test',
      to: ['b@sink.test', 'c@sink.test'],
      messageId: `<${number}@x>`,
      text: '.dot\n',
    })
  transport.close()
  assert.equal(sink.copies.length, 6)
  assert.equal(sink.copiesOf('<2@x>').length, 2)
  assert.match(sink.copiesOf('<2@x>')[0]!.raw.toString(), /\r\n\.dot\r\n/)
})

function pick({ outcome, stage, reply }: Awaited<ReturnType<typeof sendMail>>): string[] {
  return [outcome, stage, reply]
}
