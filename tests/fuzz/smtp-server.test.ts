// Random input to the SMTP server: pure parsers against plain models, then the real server on a socket.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatReply } from '../../src/smtp/reply.ts'
import { parseCommand } from '../../src/smtp/server/command.ts'
import { DotReader } from '../../src/smtp/server/dot-reader.ts'
import { LineEnds } from '../../src/smtp/server/line-ends.ts'
import { parsePath } from '../../src/smtp/server/path.ts'
import { inCpuTime } from '../support/cpu-time.ts'
import { until } from '../support/until.ts'
import { startMx } from '../wire/mx.ts'
import { Talk } from '../wire/talk.ts'

const pieces = fc.array(
  fc.constantFrom('\r\n', '\r', '\n', '.', '..', '\0', 'a', 'text', '\r\n.', '\r\n.\r\n', '\x80'),
  { maxLength: 40 },
)
const cuts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 10 })

/** Yields the bytes in pieces whose sizes cycle through `sizes`. */
function* slices(bytes: Buffer, sizes: number[]): Generator<Buffer> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!
    yield Buffer.from(bytes.subarray(at, at + size))
    at += size
  }
}

const isBroken = (text: string) => /\r(?!\n)|(?<!\r)\n|\0/.test(text)

test('check 1: the dot reader agrees with a model on whole strings, however the bytes are cut', () => {
  fc.assert(
    fc.property(pieces, cuts, (parts, sizes) => {
      const wire = `${parts.join('')}\r\n.\r\nREST`
      const end = `\r\n${wire}`.indexOf('\r\n.\r\n')
      const body = `\r\n${wire}`.slice(2, end + 2)
      const reader = new DotReader()
      let content = ''
      let taken = 0
      for (const slice of slices(Buffer.from(wire, 'latin1'), sizes)) {
        const part = reader.read(slice)
        content += part.content.toString('latin1')
        taken += part.next
        if (part.isOver) break
      }
      assert.equal(taken, end + 3)
      assert.equal(reader.isBroken, isBroken(body))
      if (!reader.isBroken) assert.equal(content, body.replace(/(^|\r\n)\./g, '$1'))
    }),
    { numRuns: 5000 },
  )
})

test('check 20: line ends are judged alike however the bytes are cut', () => {
  fc.assert(
    fc.property(pieces, cuts, (parts, sizes) => {
      const lineEnds = new LineEnds('message')
      for (const slice of slices(Buffer.from(parts.join(''), 'latin1'), sizes)) lineEnds.check(slice)
      lineEnds.end()
      assert.equal(lineEnds.isBroken, isBroken(parts.join('')))
    }),
    { numRuns: 5000 },
  )
})

test('check 22: only the header of a binary message is judged, however the bytes are cut', () => {
  const parts = fc.array(fc.oneof(pieces, fc.constant(['\r\n', '\r\n'])), { maxLength: 4 })
  fc.assert(
    fc.property(parts, cuts, (lists, sizes) => {
      const text = lists.flat().join('')
      const lineEnds = new LineEnds('header')
      for (const slice of slices(Buffer.from(text, 'latin1'), sizes)) lineEnds.check(slice)
      lineEnds.end()
      const end = `\r\n${text}`.indexOf('\r\n\r\n')
      assert.equal(lineEnds.isBroken, isBroken(end < 0 ? text : text.slice(0, end + 2)))
    }),
    { numRuns: 5000 },
  )
})

const commandText = fc.array(
  fc.oneof(
    fc.constantFrom(
      'MAIL FROM:',
      'RCPT TO:',
      '<',
      '>',
      '@',
      '"',
      '\\',
      ' ',
      'SIZE=1',
      'BODY=BINARYMIME',
      'a.b',
      'x.test',
      '.',
      '[IPv6:',
    ),
    fc.string({ unit: 'binary', maxLength: 5 }),
  ),
  { maxLength: 12 },
)

test('check 27: no command line throws, and an accepted one parses to itself', () => {
  fc.assert(
    fc.property(fc.constantFrom('', 'MAIL FROM:', 'RCPT TO:<'), commandText, (start, parts) => {
      const command = parseCommand(Buffer.from(`${start}${parts.join('')}\r`), 'mx.test')
      const path = command.verb === 'RCPT' ? command.to : command.verb === 'MAIL' ? command.from : null
      if (path === null || path.address === '') return
      const { localPart, domain, address } = path
      assert.deepEqual(parsePath(`<${address}>`), { localPart, domain, address })
      assert.doesNotMatch(address, /[\x00-\x1f\x7f-\x9f]/)
      assert.match(domain, /^[\x21-\x7e]+$/)
    }),
    { numRuns: 5000 },
  )
})

test('check 60: hostile command lines take linear time', () => {
  for (const unit of ['"', '\\"', '<', '@a,', '.', 'a.', '(', 'ü', '"\\', ' ']) {
    const read = () => {
      for (let i = 0; i < 100; i++) parseCommand(Buffer.from(`RCPT TO:<${unit.repeat(5000)}\r`), 'mx.test')
      for (let i = 0; i < 100; i++) parsePath(`<${unit.repeat(5000 / unit.length)}@x.test>`)
    }
    inCpuTime(1_000, read, unit)
  }
})

test('check 27: any reply is written as whole lines of printable ASCII', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.option(fc.constant('5.1.1')), (text, enhanced) => {
      assert.match(
        formatReply({ code: 550, enhanced, text }),
        /^(550-[\x20-\x7e]*\r\n)*550 [\x20-\x7e]*\r\n$/,
      )
    }),
  )
})

// Waits for the event loop, so that the next write is a separate segment.
const pause = null
const anyLine = fc.oneof(
  fc.constantFrom('EHLO c.test', 'MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>', 'DATA', 'RSET', '.', 'QUIT'),
  fc.constantFrom(
    'BDAT 3 LAST\r\nabc',
    'BDAT 2\r\nab',
    'BDAT 4 LAST\r\n\r\n\n\0',
    'NOOP',
    'VRFY u',
    '..',
    'a\nb',
    'a\rb',
    '\0',
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
)
const envelope = ['MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>']
const binaryEnvelope = ['MAIL FROM:<a@x.test> BODY=BINARYMIME', 'RCPT TO:<u@our.test>']
const transaction = fc
  .array(anyLine, { maxLength: 3 })
  .map((body) => ['RSET', ...envelope, 'DATA', pause, ...body, '.', pause])
const scripts = fc
  .array(
    fc.oneof(
      transaction,
      fc.constant([...envelope, 'BDAT 3 LAST\r\nabc']),
      fc.constant([...binaryEnvelope, 'BDAT 4 LAST\r\n\r\n\n\0']),
      fc.tuple(anyLine),
      fc.constant([pause]),
    ),
    {
      maxLength: 12,
    },
  )
  .map((parts): (string | null)[] => parts.flat())

test('random conversations get whole replies, store each acknowledged message, and leave nothing open', async (t) => {
  const mx = await startMx(t, {
    limits: { connectionsPerMinutePerAddress: 10_000, maxErrorsPerAddress: 1e9, maxUnknownPerAddress: 1e9 },
  })
  let acknowledged = 0
  await fc.assert(
    fc.asyncProperty(scripts, cuts, async (script, sizes) => {
      const talk = await Talk.connect(t, mx.port)
      await talk.reply()
      for (const slice of slices(Buffer.from(`EHLO c.test\r\n`), [100])) talk.write(slice)
      await talk.reply()
      for (const line of script) {
        if (line !== null) for (const slice of slices(Buffer.from(`${line}\r\n`), sizes)) talk.write(slice)
        else for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve))
      }
      talk.end()
      for (let line = await talk.line(); line !== null; line = await talk.line()) {
        assert.match(line, /^[2-5]\d\d[ -][\x20-\x7e]*$/)
        if (line === '250 2.0.0 Accepted') acknowledged++
      }
      talk.destroy()
    }),
    { numRuns: 300 },
  )
  await until('the end of every session', () => mx.server.sessions === 0)
  assert.ok(acknowledged > 20, 'some conversations send a message')
  assert.equal(mx.recorder.got.length, acknowledged)
  assert.equal(mx.recorder.begun, mx.recorder.got.length + mx.recorder.aborted)
  assert.deepEqual(mx.errors, [])
})
