// Tests the message on the wire: its end, malformed content, and DATA and BDAT alike, byte for byte.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { until } from '../support/until.ts'
import { type Mx, startMx } from './mx.ts'
import { play, Talk } from './talk.ts'

async function recipientAccepted(t: TestContext, mx: Mx): Promise<Talk> {
  const talk = await Talk.connect(t, mx.port)
  await talk.reply()
  await talk.ask('EHLO client.test')
  await talk.ask('MAIL FROM:<a@x.test>')
  assert.match((await talk.ask('RCPT TO:<u@our.test>'))!, /^250/)
  return talk
}

const falseEnds = [
  '\n.\n',
  '\n.\r\n',
  '\r.\r',
  '\r.\n',
  '\n.\r',
  '\r.\r\n',
  '\r\n.\n',
  '\r\n.\r',
  '\r\n\0.\r\n',
  '\r\n.\0\r\n',
  '\r\r\n.\r\r\n',
]
const smuggled = 'MAIL FROM:<evil@x.test>\r\nRCPT TO:<v@our.test>\r\nDATA\r\nSubject: smuggled\r\n\r\nbody'

for (const falseEnd of falseEnds) {
  for (const cut of [Number.POSITIVE_INFINITY, 1]) {
    const how = cut === 1 ? 'byte by byte' : 'in one segment'
    test(`check 1: ${JSON.stringify(falseEnd)} does not end a message, ${how}`, async (t) => {
      const mx = await startMx(t)
      const talk = await recipientAccepted(t, mx)
      assert.match((await talk.ask('DATA'))!, /^354/)
      const text = `Subject: first\r\n\r\nbody${falseEnd}${smuggled}\r\n.\r\n`
      if (cut === 1) for (const byte of text) await talk.push(Buffer.from(byte))
      else talk.write(text)
      assert.equal(await talk.reply(), '550 5.6.0 Message contains a bare CR, a bare LF or a NUL')
      assert.equal(await talk.ask('NOOP'), '250 2.0.0 OK', 'nothing of the message was executed')
      assert.deepEqual([mx.recorder.got.length, mx.recorder.begun, mx.recorder.aborted], [0, 1, 1])
    })
  }
}

const broken = [
  ['check 2: a bare LF between header fields', 'Subject: a\nFrom: b@x.test\r\n\r\nbody\r\n'],
  ['check 2: a bare LF before the body', 'Subject: a\r\n\nbody\r\n'],
  ['a bare CR in the body', 'Subject: a\r\n\r\nbo\rdy\r\n'],
  ['check 22: a NUL in the body', 'Subject: a\r\n\r\nbo\0dy\r\n'],
  ['a bare CR before a CRLF', 'Subject: a\r\n\r\nbody\r\r\n'],
] as const

for (const [name, text] of broken) {
  test(`${name} is 550 5.6.0 in DATA and in BDAT`, async (t) => {
    const mx = await startMx(t)
    const talk = await recipientAccepted(t, mx)
    await talk.ask('DATA')
    talk.write(`${text}.\r\n`)
    assert.match((await talk.reply())!, /^550 5\.6\.0 /)
    await talk.ask('MAIL FROM:<a@x.test>')
    await talk.ask('RCPT TO:<u@our.test>')
    talk.write(`BDAT ${text.length} LAST\r\n${text}`)
    assert.match((await talk.reply())!, /^550 5\.6\.0 /)
    assert.deepEqual([mx.recorder.got.length, mx.recorder.aborted], [0, 2])
  })
}

const kept: [string, Buffer][] = [
  [
    'check 22: 8-bit bytes of no charset',
    Buffer.concat([Buffer.from([0xff, 0x80, 0xc3, 0x28]), Buffer.from('\r\n')]),
  ],
  ['check 8: a line of 50,000 octets', Buffer.from(`${'x'.repeat(50_000)}\r\n`)],
  ['check 42: dots of every kind', Buffer.from('.\r\n..\r\n...\r\na.\r\n.a\r\n\r\n.\r\n')],
  ['an empty message', Buffer.from('')],
  ['empty lines only', Buffer.from('\r\n\r\n\r\n')],
]

for (const [name, content] of kept) {
  test(`${name} is kept byte for byte, by DATA and by BDAT in chunks of every size`, async (t) => {
    const mx = await startMx(t)
    const talk = await recipientAccepted(t, mx)
    await talk.ask('DATA')
    const stuffed = content.toString('latin1').replace(/(^|\r\n)\./g, '$1..')
    talk.write(Buffer.from(`${stuffed}.\r\n`, 'latin1'))
    assert.match((await talk.reply())!, /^250/)
    for (const sizeBytes of [1, 2, 3, 1000, 60_000]) {
      if (content.length / sizeBytes > 1000) continue
      await talk.ask('MAIL FROM:<a@x.test>')
      await talk.ask('RCPT TO:<u@our.test>')
      for (let at = 0; at < content.length; at += sizeBytes) {
        const chunk = content.subarray(at, at + sizeBytes)
        talk.write(Buffer.concat([Buffer.from(`BDAT ${chunk.length}\r\n`), chunk]))
        assert.equal(await talk.reply(), `250 2.0.0 ${chunk.length} octets received`)
      }
      assert.match((await talk.ask('BDAT 0 LAST'))!, /^250 2\.0\.0 Accepted/)
    }
    assert.ok(mx.recorder.got.length > 1)
    for (const got of mx.recorder.got) assert.deepEqual(got.content, content)
  })
}

const bdatCases: { name: string; transcript: string; messages?: string[] }[] = [
  {
    name: 'check 20: all in one group, a chunk border between CR and LF, a dot line that ends nothing',
    transcript: `C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@our.test>
      C= "BDAT 4\\r\\nabc\\rBDAT 8 LAST\\r\\n\\n.\\r\\nde\\r\\nQUIT\\r\\n"
      S: 250 2.1.0 *
      S: 250 2.1.5 *
      S: 250 2.0.0 4 octets received
      S: 250 2.0.0 Accepted
      S: 221 *
      S.`,
    messages: ['abc\r\n.\r\nde\r\n'],
  },
  {
    name: 'check 20: DATA after BDAT is 503, as are MAIL and RCPT, and RSET forgets the chunks',
    transcript: `C: MAIL FROM:<a@x.test>
      S: 250 *
      C: RCPT TO:<u@our.test>
      S: 250 *
      C= "BDAT 3\\r\\nabc"
      S: 250 *
      C: DATA
      S: 503 5.5.1 *
      C: MAIL FROM:<b@x.test>
      S: 503 5.5.1 *
      C: RCPT TO:<v@our.test>
      S: 503 5.5.1 *
      C: RSET
      S: 250 *
      C= "BDAT 3 LAST\\r\\nabc"
      S: 503 5.5.1 *`,
  },
  {
    name: 'check 20: a refused chunk is read over, not executed',
    transcript: `C= "BDAT 6\\r\\nQUIT\\r\\n"
      S: 503 5.5.1 *
      C: MAIL FROM:<a@x.test>
      S: 250 *
      C= "BDAT 6 LAST\\r\\nQUIT\\r\\n"
      S: 503 5.5.1 No valid recipients
      C: NOOP
      S: 250 *`,
  },
  {
    name: 'check 20: a BDAT without a size ends the connection',
    transcript: `C= "BDAT x LAST\\r\\nQUIT\\r\\n"
      S: 501 5.5.4 *
      S.`,
  },
  {
    name: 'check 9: chunks past the limit are 552, and so is what follows them',
    transcript: `C: MAIL FROM:<a@x.test>
      S: 250 *
      C: RCPT TO:<u@our.test>
      S: 250 *
      C= "BDAT 60000\\r\\n${'x'.repeat(60_000)}"
      S: 250 *
      C= "BDAT 60000\\r\\n${'x'.repeat(60_000)}"
      S: 552 5.3.4 *
      C= "BDAT 1 LAST\\r\\nx"
      S: 552 5.3.4 *
      C: RCPT TO:<u@our.test>
      S: 503 *`,
  },
  {
    name: 'a CR at the very end is bare',
    transcript: `C: MAIL FROM:<a@x.test>
      S: 250 *
      C: RCPT TO:<u@our.test>
      S: 250 *
      C= "BDAT 4 LAST\\r\\nabc\\r"
      S: 550 5.6.0 *`,
  },
]

for (const { name, transcript, messages = [] } of bdatCases) {
  test(name, async (t) => {
    const mx = await startMx(t, { secureContext: () => null })
    const hello = `S: 220 *\nC: EHLO client.test\n${'S: 250-*\n'.repeat(8)}S: 250 LIMITS *\n`
    await play(t, mx.port, hello + transcript)
    assert.deepEqual(
      mx.recorder.got.map(({ content }) => content.toString()),
      messages,
    )
  })
}

const binary = Buffer.from(
  'Content-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: binary\r\n\r\n--b\r\n\r\n\n\r\0\xff\r\r\n.\r\n\n.\n\r\n--b--\r',
  'latin1',
)

test('check 22: a binary message is kept byte for byte, in chunks of every size', async (t) => {
  const mx = await startMx(t)
  const talk = await Talk.connect(t, mx.port)
  await talk.reply()
  await talk.ask('EHLO client.test')
  for (let sizeBytes = 1; sizeBytes <= binary.length; sizeBytes += sizeBytes < 8 ? 1 : 37) {
    assert.match((await talk.ask('MAIL FROM:<a@x.test> BODY=binarymime'))!, /^250/)
    await talk.ask('RCPT TO:<u@our.test>')
    for (let at = 0; at < binary.length; at += sizeBytes) {
      const chunk = binary.subarray(at, at + sizeBytes)
      talk.write(Buffer.concat([Buffer.from(`BDAT ${chunk.length}\r\n`), chunk]))
      assert.match((await talk.reply())!, /^250/)
    }
    assert.equal(await talk.ask('BDAT 0 LAST'), '250 2.0.0 Accepted')
  }
  assert.ok(mx.recorder.got.length >= 10)
  for (const { content, envelope } of mx.recorder.got) {
    assert.deepEqual(content, binary)
    assert.equal(envelope.from.body, 'BINARYMIME')
  }
})

test('check 20: DATA for a binary message is 503, and BDAT continues', async (t) => {
  const mx = await startMx(t, { secureContext: () => null })
  const talk = await Talk.connect(t, mx.port)
  await talk.reply()
  await talk.ask('EHLO client.test')
  await talk.ask('MAIL FROM:<a@x.test> BODY=BINARYMIME')
  await talk.ask('RCPT TO:<u@our.test>')
  assert.match((await talk.ask('DATA'))!, /^503 5\.5\.1/)
  talk.write('BDAT 5 LAST\r\n\r\n\n.\n')
  assert.match((await talk.reply())!, /^250/)
  assert.equal(mx.recorder.got[0]!.content.toString(), '\r\n\n.\n')
})

for (const header of [
  'Subject: a\nTo: x\r\n\r\n',
  'Subject: \0\r\n\r\n',
  'Subject: a\r\n\nx',
  'Subject: a\r',
])
  test(`check 2: a binary message needs lines in its header: ${JSON.stringify(header)}`, async (t) => {
    const mx = await startMx(t)
    const talk = await Talk.connect(t, mx.port)
    await talk.reply()
    await talk.ask('EHLO client.test')
    await talk.ask('MAIL FROM:<a@x.test> BODY=BINARYMIME')
    await talk.ask('RCPT TO:<u@our.test>')
    talk.write(`BDAT ${header.length} LAST\r\n${header}`)
    assert.match((await talk.reply())!, /^550 5\.6\.0/)
    // Without BODY=BINARYMIME the body consists of lines too.
    await talk.ask('MAIL FROM:<a@x.test> BODY=8BITMIME')
    await talk.ask('RCPT TO:<u@our.test>')
    talk.write('BDAT 9 LAST\r\na: b\r\n\r\n\n')
    assert.match((await talk.reply())!, /^550 5\.6\.0/)
    assert.deepEqual(mx.recorder.got, [])
  })

test('check 1: no byte of a binary message counts as a command or an end', async (t) => {
  const mx = await startMx(t)
  const talk = await Talk.connect(t, mx.port)
  await talk.reply()
  await talk.ask('EHLO client.test')
  for (const falseEnd of [...falseEnds, '\r\n.\r\n', '\0\r\n.\r\n\0']) {
    const text = `Subject: x\r\n\r\nbody${falseEnd}${smuggled}\r\n.\r\nBDAT 3 LAST\r\nxyz`
    talk.write(
      `MAIL FROM:<a@x.test> BODY=BINARYMIME\r\nRCPT TO:<u@our.test>\r\nBDAT ${text.length} LAST\r\n${text}NOOP\r\n`,
    )
    for (const want of [/^250 2\.1\.0/, /^250 2\.1\.5/, /^250 2\.0\.0 Accepted/, /^250 2\.0\.0 OK/])
      assert.match((await talk.reply())!, want)
    assert.equal(
      mx.recorder.got
        .splice(0)
        .map(({ content }) => content.toString())
        .join(),
      text,
    )
  }
})

test('check 8: one line of 40 MB is discarded in bounded memory', async (t) => {
  const mx = await startMx(t)
  const talk = await recipientAccepted(t, mx)
  await talk.ask('DATA')
  const block = Buffer.alloc(1 << 20, 'x')
  const beforeBytes = process.memoryUsage().rss
  for (let i = 0; i < 40; i++) await talk.push(block)
  talk.write('\r\n.\r\n')
  assert.match((await talk.reply())!, /^552 5\.3\.4/)
  assert.ok(process.memoryUsage().rss - beforeBytes < 60 << 20)
})

test('check 28: 250 follows only after the backend’s answer, and its refusals are passed on', async (t) => {
  const mx = await startMx(t)
  const commit = Promise.withResolvers<{ code: number; enhanced: string; text: string }>()
  let ended = false
  mx.recorder.message = () => ({
    write() {},
    end() {
      ended = true
      return commit.promise
    },
    abort() {},
  })
  const talk = await recipientAccepted(t, mx)
  await talk.ask('DATA')
  talk.write('x\r\n.\r\n')
  await until('the end of the message', () => ended)
  let answered = false
  const answer = talk.reply().then((line) => {
    answered = true
    return line
  })
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(answered, false)
  commit.resolve({ code: 452, enhanced: '4.3.1', text: 'No room\r\n250 injected' })
  assert.equal(await answer, '452-4.3.1 No room?\n452 4.3.1 250 injected')
})

const failures: [string, (mx: Mx) => void][] = [
  ['recipient', (mx) => (mx.recorder.recipient = () => assert.fail('bug'))],
  ['message', (mx) => (mx.recorder.message = () => assert.fail('bug'))],
  ['write', (mx) => replaceIncoming(mx, { write: () => assert.fail('bug') })],
  ['write, later', (mx) => replaceIncoming(mx, { write: () => Promise.reject(new Error('bug')) })],
  ['end', (mx) => replaceIncoming(mx, { end: () => Promise.reject(new Error('bug')) })],
]

function replaceIncoming(mx: Mx, parts: object): void {
  const make = mx.recorder.message.bind(mx.recorder)
  mx.recorder.message = (envelope) => ({ ...make(envelope), ...parts })
}

for (const [name, spoil] of failures) {
  test(`check 87: a backend that fails in ${name} is 451, logged once, and the session goes on`, async (t) => {
    const mx = await startMx(t)
    spoil(mx)
    const talk = await Talk.connect(t, mx.port)
    await talk.reply()
    await talk.ask('EHLO client.test')
    await talk.ask('MAIL FROM:<a@x.test>')
    const replies = [await talk.ask('RCPT TO:<u@our.test>')]
    if (replies[0]!.startsWith('250')) replies.push(await talk.ask('DATA'))
    if (replies.at(-1)!.startsWith('354')) replies.push(await talk.ask('x\r\n.'))
    assert.match(replies.at(-1)!, /^451 4\.3\.0/)
    assert.equal(mx.errors.length, 1)
    assert.match((await talk.ask('RSET'))!, /^250/)
  })
}

test('check 8: a message sent in single bytes reaches the backend in larger pieces', async (t) => {
  const mx = await startMx(t)
  const pieces: Buffer[] = []
  replaceIncoming(mx, { write: (piece: Buffer) => void pieces.push(piece) })
  const talk = await recipientAccepted(t, mx)
  await talk.ask('DATA')
  const content = 'Subject: x\r\n\r\n'.padEnd(6000, 'body ')
  for (const byte of content) await talk.push(Buffer.from(byte))
  talk.write('\r\n.\r\n')
  assert.match((await talk.reply())!, /^250/)
  assert.equal(Buffer.concat(pieces).toString(), `${content}\r\n`)
  assert.ok(pieces.length <= 3, `${pieces.length} pieces`)
})

test('a slow backend slows its peer, and gets every byte in order', async (t) => {
  const mx = await startMx(t, { maxSizeBytes: 10 << 20 })
  let writing = false
  const chunks: Buffer[] = []
  replaceIncoming(mx, {
    async write(chunk: Buffer) {
      assert.equal(writing, false)
      writing = true
      chunks.push(Buffer.from(chunk))
      await new Promise((resolve) => setImmediate(resolve))
      writing = false
    },
  })
  const talk = await recipientAccepted(t, mx)
  await talk.ask('DATA')
  const line = Buffer.from(`${'0123456789'.repeat(7)}\r\n`)
  const content = Buffer.concat(Array<Buffer>(50_000).fill(line))
  talk.write(content)
  talk.write('.\r\n')
  assert.match((await talk.reply())!, /^250/)
  assert.ok(content.equals(Buffer.concat(chunks)))
})
