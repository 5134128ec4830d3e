// Tests the SMTP connection: TLS, the PROXY header, early talkers, deadlines, limits, malformed lines and draining.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { until } from '../support/until.ts'
import { type Mx, startMx } from './mx.ts'
import { play, Talk } from './talk.ts'

async function greeted(t: TestContext, mx: Mx): Promise<Talk> {
  const talk = await Talk.connect(t, mx.port)
  assert.equal(await talk.reply(), '220 mx.test ESMTP Posthorn')
  return talk
}

async function inMessage(t: TestContext, mx: Mx): Promise<Talk> {
  const talk = await greeted(t, mx)
  await talk.ask('EHLO client.test')
  await talk.ask('MAIL FROM:<a@x.test>')
  await talk.ask('RCPT TO:<u@our.test>')
  assert.match((await talk.ask('DATA'))!, /^354/)
  return talk
}

test('check 4, check 25: STARTTLS forgets all earlier commands, and the TLS facts are recorded', async (t) => {
  const mx = await startMx(t)
  const talk = await greeted(t, mx)
  assert.match((await talk.ask('EHLO before.test'))!, /STARTTLS$/)
  await talk.ask('MAIL FROM:<before@x.test>')
  assert.match((await talk.ask('STARTTLS'))!, /^220/)
  const { protocol } = await talk.secure()
  assert.match((await talk.ask('RCPT TO:<u@our.test>'))!, /^503/)
  assert.match((await talk.ask('MAIL FROM:<a@x.test>'))!, /^503/)
  assert.doesNotMatch((await talk.ask('EHLO after.test'))!, /STARTTLS/)
  assert.match((await talk.ask('STARTTLS'))!, /^503/)
  for (const line of ['MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>', 'DATA']) await talk.ask(line)
  assert.match((await talk.ask(`${'x'.repeat(70_000)}\r\n.`))!, /^250/)
  const [got] = mx.recorder.got
  const { peer, from } = got!.envelope
  assert.deepEqual([peer.helo, peer.protocol, from.address], ['after.test', 'ESMTPS', 'a@x.test'])
  assert.deepEqual(peer.tls, { encrypted: true, protocol, cipher: 'TLS_AES_256_GCM_SHA384' })
  talk.destroy()
  await until('the end of the session', () => mx.server.sessions === 0)
})

test('check 3: a command after STARTTLS in one segment ends the connection', async (t) => {
  const mx = await startMx(t, { maxSizeBytes: 1 })
  await play(
    t,
    mx.port,
    `S: 220 *
    C: HELO client.test
    S: 250 *
    C: STARTTLS
    C: MAIL FROM:<injected@x.test>
    S: 554 5.5.0 *
    S.`,
  )
})

test('check 3: plaintext sent after STARTTLS in its own segment is never obeyed', async (t) => {
  const mx = await startMx(t)
  const talk = await greeted(t, mx)
  await talk.ask('EHLO client.test')
  assert.match((await talk.ask('STARTTLS'))!, /^220/)
  talk.write('EHLO x\r\nMAIL FROM:<injected@x.test>\r\nRCPT TO:<u@our.test>\r\n')
  await until('the end of the session', () => mx.server.sessions === 0)
  assert.deepEqual(mx.recorder.asked, [])
})

test('check 25: TLS 1.1 and a broken handshake end only their own session', async (t) => {
  const mx = await startMx(t)
  const talk = await greeted(t, mx)
  await talk.ask('EHLO client.test')
  await talk.ask('STARTTLS')
  await assert.rejects(
    talk.secure({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'ALL:@SECLEVEL=0' }),
  )
  await until('the end of the session', () => mx.server.sessions === 0)
  await greeted(t, mx)
})

test('without a certificate STARTTLS is not offered, and is 454', async (t) => {
  const mx = await startMx(t, { secureContext: () => null })
  const talk = await greeted(t, mx)
  assert.doesNotMatch((await talk.ask('EHLO client.test'))!, /STARTTLS/)
  assert.match((await talk.ask('STARTTLS'))!, /^454 4\.7\.0/)
})

test('check 5: a client that speaks before the banner is refused and never obeyed', async (t) => {
  const mx = await startMx(t)
  const talk = await Talk.connect(t, mx.port)
  talk.write('EHLO early.test\r\nMAIL FROM:<a@x.test>\r\nRCPT TO:<u@our.test>\r\n')
  const first = (await talk.line())!
  // Bytes that arrive before the banner get a refusal instead of the banner. Bytes that cross it get the refusal after it.
  assert.match(first.startsWith('220') ? (await talk.line())! : first, /^554 5\.5\.0/)
  assert.equal(await talk.line(), null)
  assert.deepEqual(mx.recorder.asked, [])
})

test('check 7: a flood without CRLF is cut after 16 KiB', async (t) => {
  const mx = await startMx(t)
  const talk = await greeted(t, mx)
  const block = Buffer.alloc(1 << 20, 'x')
  for (let sent = 0; sent < 100 && (await talk.push(block)); sent++);
  assert.match((await talk.reply())!, /^500 5\.5\.2/)
  assert.equal(await talk.line(), null)
  mx.clock.advance(3000)
  await until('the end of the session', () => mx.server.sessions === 0)
})

const proxied: [string, string, string][] = [
  ['TCP4', 'PROXY TCP4 192.0.2.7 192.0.2.1 4711 25', '192.0.2.7'],
  ['TCP6', 'PROXY TCP6 2001:db8::7 2001:db8::1 4711 25', '2001:db8::7'],
  ['UNKNOWN', 'PROXY UNKNOWN', '127.0.0.1'],
]
for (const [name, line, address] of proxied) {
  for (const pause of ['at once', 'after the banner']) {
    test(`check 24: a trusted proxy names the peer, ${name}, ${pause}`, async (t) => {
      const mx = await startMx(t, { isTrusted: (peer) => peer === '127.0.0.1' })
      const talk = await Talk.connect(t, mx.port)
      if (pause === 'at once') talk.write(`${line}\r\n`)
      assert.match((await talk.reply())!, /^220/)
      if (pause !== 'at once') talk.write(`${line}\r\n`)
      await talk.ask('HELO client.test')
      for (const command of ['MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>', 'DATA']) await talk.ask(command)
      assert.match((await talk.ask('x\r\n.'))!, /^250/)
      assert.equal(mx.recorder.got[0]!.envelope.peer.address, address)
    })
  }
}

test('check 24: a malformed PROXY line ends the connection, and a second one is a bad command', async (t) => {
  const mx = await startMx(t, { isTrusted: () => true })
  await play(t, mx.port, 'C: PROXY TCP4 999.0.2.7 192.0.2.1 1 2\nS: 554 *\nS.')
  await play(t, mx.port, 'C: PROXY UNKNOWN\nS: 220 *\nC: PROXY UNKNOWN\nS: 500 *')
})

const header = (hex: string) => Buffer.from(`0d0a0d0a000d0a515549540a${hex}`.replaceAll(' ', ''), 'hex')
const binaries: [string, Buffer, string][] = [
  ['TCP4', header('21110010 c0000207 c0000201 1267 0019 04000100'), '192.0.2.7'],
  ['a look at us', header('20000000'), '127.0.0.1'],
]
for (const [name, bytes, address] of binaries) {
  for (const pieces of [1, 3, bytes.length]) {
    test(`check 24: a trusted proxy speaks its second version, ${name}, in ${pieces} pieces`, async (t) => {
      const mx = await startMx(t, { isTrusted: (peer) => peer === '127.0.0.1' })
      const talk = await Talk.connect(t, mx.port)
      const step = Math.ceil(bytes.length / pieces)
      for (let at = 0; at < bytes.length; at += step) await talk.push(bytes.subarray(at, at + step))
      assert.match((await talk.reply())!, /^220/)
      await talk.ask('HELO client.test')
      for (const command of ['MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>', 'DATA']) await talk.ask(command)
      assert.match((await talk.ask('x\r\n.'))!, /^250/)
      assert.equal(mx.recorder.got[0]!.envelope.peer.address, address)
    })
  }
}

test('check 24: PROXY version 2 is refused if it is malformed or from an untrusted address', async (t) => {
  for (const [trusted, hex] of [
    [true, '2112000c c0000207 c0000201 1267 0019'],
    [false, '2111000c c0000207 c0000201 1267 0019'],
  ] as const) {
    const mx = await startMx(t, { isTrusted: () => trusted })
    const talk = await Talk.connect(t, mx.port)
    talk.write(header(hex))
    const heard = [await talk.line(), await talk.line()].map((line) => line?.slice(0, 3))
    assert.ok(heard.includes('554') || heard.includes('500'), heard.join())
    assert.deepEqual(mx.recorder.asked, [])
  }
})

test('check 15: a command that arrives byte by byte is cut at its deadline', async (t) => {
  const mx = await startMx(t)
  const talk = await greeted(t, mx)
  for (let i = 0; i < 4; i++) {
    await talk.push(Buffer.from('N'))
    mx.clock.advance(100_000)
  }
  assert.equal(await talk.reply(), '421 4.4.2 Timeout')
  assert.equal(await talk.line(), null)
})

test('check 15: a message that arrives byte by byte is cut at its deadline, and a silent one earlier', async (t) => {
  const mx = await startMx(t)
  const slow = await inMessage(t, mx)
  const silent = await inMessage(t, mx)
  const other = await greeted(t, mx)
  mx.clock.advance(100_000)
  await slow.push(Buffer.from('x'))
  await until('the byte', () => mx.recorder.begun === 2)
  assert.equal(await other.ask('NOOP'), '250 2.0.0 OK', 'the slow ones hold nobody else')
  mx.clock.advance(100_000)
  assert.equal(await silent.reply(), '421 4.4.2 Timeout')
  mx.clock.advance(500_000)
  assert.equal(await slow.reply(), '421 4.4.2 Timeout')
  await until('both aborts', () => mx.recorder.aborted === 2)
})

test('check 15: a session ends after its time, but not within a message', async (t) => {
  const mx = await startMx(t, { limits: { sessionTimeoutMs: 1000 } })
  const talk = await inMessage(t, mx)
  const idle = await greeted(t, mx)
  mx.clock.advance(2000)
  assert.equal(await idle.reply(), '421 4.4.2 Timeout')
  assert.equal(await talk.ask('x\r\n.'), '250 2.0.0 Accepted')
  assert.equal(await talk.reply(), '421 4.4.2 Timeout')
})

test('check 15: a peer that never reads is cut', async (t) => {
  const mx = await startMx(t)
  const talk = await greeted(t, mx)
  talk.deaf()
  const block = Buffer.from('HELP\r\n'.repeat(20_000))
  const flood = (async () => {
    while (await talk.push(block));
  })()
  // Eventually the replies fill every buffer, and the server waits in vain.
  await until('the end of the session', () => {
    mx.clock.advance(10_000)
    return mx.server.sessions === 0
  })
  await flood
})

const steps: [string, string[]][] = [
  ['the banner', []],
  ['EHLO', ['EHLO client.test']],
  ['MAIL', ['EHLO client.test', 'MAIL FROM:<a@x.test>']],
  ['RCPT', ['EHLO client.test', 'MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>']],
  ['DATA', ['EHLO client.test', 'MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>', 'DATA']],
  ['BDAT', ['EHLO client.test', 'MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>']],
]
for (const [name, commands] of steps) {
  for (const way of ['destroy', 'end'] as const) {
    test(`check 16: a peer that leaves after ${name} (${way}) leaves no message and no session`, async (t) => {
      const mx = await startMx(t)
      const talk = await greeted(t, mx)
      for (const command of commands) await talk.ask(command)
      if (name === 'DATA') await talk.push(Buffer.from('Subject: x\r\n\r\nhalf a mess'))
      if (name === 'BDAT') await talk.push(Buffer.from('BDAT 100 LAST\r\nhalf a mess'))
      talk[way]()
      await until('the end of the session', () => mx.server.sessions === 0)
      assert.deepEqual([mx.recorder.got.length, mx.recorder.aborted], [0, mx.recorder.begun])
    })
  }
}

test('check 16: a peer that only stops sending after its message still gets the answer', async (t) => {
  const mx = await startMx(t)
  const talk = await inMessage(t, mx)
  talk.write('x\r\n.\r\n')
  talk.end()
  assert.equal(await talk.reply(), '250 2.0.0 Accepted')
  assert.equal(await talk.line(), null)
})

test('check 18: connections are bounded in total and per address, and slots return', async (t) => {
  const mx = await startMx(t, { limits: { maxConnections: 3, maxConnectionsPerAddress: 2 } })
  const first = await greeted(t, mx)
  await greeted(t, mx)
  const third = await Talk.connect(t, mx.port)
  assert.equal(await third.reply(), '421 4.7.0 Too many connections, try again later')
  assert.equal(await third.line(), null)
  first.destroy()
  await until('the free slot', () => mx.server.sessions === 1)
  await greeted(t, mx)
})

test('check 18: a peer that stays after its 421 is cut after a moment', async (t) => {
  const mx = await startMx(t, { limits: { maxErrors: 0 } })
  const talk = await greeted(t, mx)
  await talk.ask('EHLO client.test')
  await talk.ask('MAIL FROM:<a@x.test>')
  assert.match((await talk.ask('RCPT TO:<unknown@our.test>'))!, /^421 4\.7\.0/)
  assert.equal(mx.server.sessions, 1)
  mx.clock.advance(3000)
  await until('the end of the session', () => mx.server.sessions === 0)
})

test('check 18: new connections per minute are bounded, except for trusted addresses', async (t) => {
  const limits = { connectionsPerMinutePerAddress: 2 }
  const mx = await startMx(t, { limits })
  for (let i = 0; i < 2; i++) await greeted(t, mx)
  assert.match((await (await Talk.connect(t, mx.port)).reply())!, /^421 4\.7\.0/)
  mx.clock.advance(60_000)
  await greeted(t, mx)
  const open = await startMx(t, { limits, isTrusted: () => true })
  for (let i = 0; i < 4; i++) await greeted(t, open)
})

test('check 91: draining sends 421 to idle peers at once, and lets a message end', async (t) => {
  const mx = await startMx(t)
  const idle = await greeted(t, mx)
  const busy = await inMessage(t, mx)
  const closed = mx.server.close(10_000)
  assert.match((await idle.reply())!, /^421 4\.3\.2/)
  assert.equal(await idle.line(), null)
  idle.end()
  busy.write('x\r\n.\r\n')
  assert.equal(await busy.reply(), '250 2.0.0 Accepted')
  assert.match((await busy.reply())!, /^421 4\.3\.2/)
  busy.end()
  await closed
  assert.equal(mx.server.sessions, 0)
})

test('check 91: sessions that are open after the grace period are cut', async (t) => {
  const mx = await startMx(t)
  const busy = await inMessage(t, mx)
  await mx.server.close(20)
  assert.equal(await busy.line(), null)
  assert.equal(mx.recorder.aborted, 1)
})

test('a TLS client on the plain port is refused', async (t) => {
  const mx = await startMx(t)
  const socket = connectTls({ port: mx.port, host: '127.0.0.1', rejectUnauthorized: false })
  t.after(() => void socket.destroy())
  await new Promise((resolve) => socket.once('error', resolve))
})

test('check 18: refused peers that stay are few, and use no slots of others', async (t) => {
  const mx = await startMx(t, { limits: { maxConnectionsPerAddress: 1 } })
  const first = await greeted(t, mx)
  const talks = await Promise.all(Array.from({ length: 300 }, () => Talk.connect(t, mx.port)))
  const replies = await Promise.all(talks.map((talk) => talk.reply()))
  const told = replies.filter((reply) => reply !== null)
  for (const reply of told) assert.match(reply, /^421 4\.7\.0/)
  assert.ok(told.length > 0 && told.length <= 200, `${told.length} were told`)
  assert.match((await first.ask('NOOP'))!, /^250/)
})
