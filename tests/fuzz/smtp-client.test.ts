// The SMTP client always returns within bounds from random peers, and never reports a delivery that did not happen.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { connect, type SmtpConnection } from '../../src/smtp/client/client.ts'
import { ReplyReader } from '../../src/smtp/client/reply-reader.ts'
import type { SendResult } from '../../src/smtp/client/transaction.ts'
import { type Rule, type Sink, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const timeouts = {
  connectMs: 2000,
  bannerMs: 60,
  ehloMs: 60,
  mailMs: 60,
  rcptMs: 60,
  dataStartMs: 60,
  dataBlockMs: 60,
  dataFinalMs: 60,
  quitMs: 60,
}

/** Timeouts for a peer that is never silent. A busy machine can be. */
const timeLimit = Object.fromEntries(Object.keys(timeouts).map((name) => [name, 10_000])) as typeof timeouts

function reach(port: number, within = timeouts) {
  const options = { ehloName: 'me.test', tls: 'none', timeouts: within } as const
  return connect({ host: 'mx.test', address: '127.0.0.1', port, ...options })
}

const replyBytes = fc
  .array(
    fc.oneof(
      fc.constantFrom('250', '550', '421', '999', '-', ' ', 'ok', '5.1.1', '\r\n', '\n', '\r', '\0', 'é'),
      fc.string({ maxLength: 20, unit: 'binary' }),
      fc.constantFrom('x'.repeat(5000), '250-x\r\n'.repeat(120)),
    ),
    { maxLength: 30 },
  )
  .map((parts) => Buffer.from(parts.join('')))

test('check 32: replies read the same however their bytes are cut', () => {
  fc.assert(
    fc.property(replyBytes, fc.array(fc.nat({ max: 200 }), { maxLength: 40 }), (bytes, cuts) => {
      const whole = new ReplyReader()
      const expected = whole.push(bytes)
      const cut = new ReplyReader()
      const got = []
      let from = 0
      for (const length of [...cuts, bytes.length]) {
        got.push(...cut.push(bytes.subarray(from, from + length)))
        from += length
      }
      assert.deepEqual(got, expected)
      assert.equal(cut.garbled, whole.garbled)
      for (const { reply } of got) {
        assert.ok(reply.code >= 200 && reply.code <= 599)
        assert.ok(reply.text.length <= 1000 && !/[\x00-\x09\x0b-\x1f\x7f]/.test(reply.text))
      }
    }),
    { numRuns: 500 },
  )
})

test('check 32: random bytes from a peer are a fault or a refusal, never an exception or a delivery', async (context) => {
  let script: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    const say = () => {
      const next = script.shift()
      if (next) socket.write(next)
      else socket.end()
    }
    say()
    socket.on('data', say)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => void server.close())
  const { port } = server.address() as { port: number }
  await fc.assert(
    fc.asyncProperty(fc.array(replyBytes, { maxLength: 3 }), fc.boolean(), async (noise, greets) => {
      script = greets ? [Buffer.from('220 x\r\n'), Buffer.from('250 x\r\n'), ...noise] : noise
      const opened = await reach(port)
      if (!('connection' in opened)) {
        assert.ok(opened.fault.message.length <= 500)
        return
      }
      const result = await opened.connection.send(
        [{ from: 'a@x.test', to: 'u@b.test', needsUtf8: false }],
        Buffer.from('x\r\n'),
      )
      opened.connection.destroy()
      // Lock-step needs five replies after EHLO. Three fragments of noise cannot deliver a message.
      assert.notEqual(result.recipients[0]!.outcome, 'delivered')
    }),
    { numRuns: 150 },
  )
})

const whims = fc.array(
  fc.oneof(
    { arbitrary: fc.constant(null), weight: 12 },
    {
      arbitrary: fc.constantFrom(
        '450 4.0.0 later',
        '550 5.1.1 no',
        '421 bye',
        '421-bye',
        '354 what',
        '250 fine',
      ),
      weight: 3,
    },
    { arbitrary: fc.constantFrom('cut', '999 odd', '250ok', '250-half', '550-half', '\u0000'), weight: 1 },
  ),
  { minLength: 1, maxLength: 12 },
)

/** A capricious but honest peer: it sends nothing after a 421, and accepts nothing after refusing MAIL. */
function whimsical(whim: readonly (string | null)[]): Rule {
  let turn = 0
  let mailRefused = false
  let leaving = false
  return ({ stage }) => {
    if (stage === 'banner' || stage === 'hello') return null
    if (leaving) return 'cut'
    if (mailRefused && stage !== 'mail') return stage === 'rcpt' || stage === 'text' ? '503 no' : '554 no'
    const answer = whim[turn++ % whim.length]!
    leaving = answer?.startsWith('421') ?? false
    if (stage === 'mail') mailRefused = answer !== null && !answer.startsWith('2')
    return answer
  }
}

const extensionSets = [[], ['PIPELINING'], ['PIPELINING', 'CHUNKING'], ['CHUNKING']]

async function campaign(sink: Sink, connection: SmtpConnection, recipients: number) {
  for (let round = 0; round < 3 && connection.isUsable; round++) {
    const to = Array.from({ length: recipients }, (_, index) => `u${index}.${round}@b.test`)
    const result = await connection.send(
      to.map((address) => ({ from: 'a@x.test', to: address, needsUtf8: false })),
      Buffer.from('Subject: x\r\n\r\nx\r\n'),
    )
    audit(sink, to, result)
    assert.equal(result.recipients.length, to.length)
  }
}

function audit(sink: Sink, to: readonly string[], { recipients, fault }: SendResult): void {
  const hasAnswered = recipients.some((result) => 'reply' in result)
  for (const [index, address] of to.entries()) {
    const copies = sink.copies.filter((copy) => copy.recipient === address).length
    const { outcome } = recipients[index]!
    const told = `${address} ${outcome} ${fault?.message}`
    if (outcome === 'delivered') assert.equal(copies, 1, told)
    else if (outcome !== 'unknown') assert.equal(copies, 0, told)
    if (outcome === 'untried' || outcome === 'unknown') assert.ok(fault || hasAnswered, told)
  }
}

test('check 29: the client’s result for each recipient agrees with the far side', async (context) => {
  for (const extensions of extensionSets) {
    const sink = await startSink(context, { extensions })
    await fc.assert(
      fc.asyncProperty(whims, fc.integer({ min: 1, max: 4 }), async (whim, recipients) => {
        sink.copies.length = 0
        sink.rule = whimsical(whim)
        const opened = await reach(sink.port, timeLimit)
        assert.ok('connection' in opened)
        await campaign(sink, opened.connection, recipients)
        opened.connection.destroy()
        // The peer may still accept a transaction that the client began ahead.
        await until('the far side to be done', () => sink.open === 0)
      }),
      { numRuns: 100 },
    )
  }
})
