// Tests the SMTP client against nodemailer's server and Postfix's smtp-sink, and compares it with nodemailer's client.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createTransport } from 'nodemailer'
import { SMTPServer } from 'smtp-server'
import { type ConnectOptions, connect, type SmtpConnection } from '../../src/smtp/client/client.ts'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import { startMx } from './mx.ts'

interface Taken {
  from: string
  to: string[]
  secure: boolean
  raw: Buffer
}

async function farSide(context: TestContext, options: object) {
  const taken: Taken[] = []
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    logger: false,
    ...options,
    onAuth: ({ username, password }, _session, done) =>
      password === 'secret' ? done(null, { user: username }) : done(new Error('no')),
    onData(stream, { envelope, secure }, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = envelope
        const to = rcptTo.map(({ address }) => address)
        taken.push({ from: mailFrom ? mailFrom.address : '', to, secure, raw: Buffer.concat(chunks) })
        done()
      })
    },
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  context.after(() => new Promise<void>((resolve) => server.close(resolve)))
  return { taken, port: (server.server.address() as { port: number }).port }
}

async function reach(
  context: TestContext,
  port: number,
  options: Partial<ConnectOptions> = {},
): Promise<SmtpConnection> {
  const opened = await connect({
    host: 'mx.test',
    address: '127.0.0.1',
    port,
    ehloName: 'me.test',
    tls: 'opportunistic',
    ...options,
  })
  assert.ok('connection' in opened, JSON.stringify(opened))
  context.after(() => opened.connection.destroy())
  return opened.connection
}

const to = ['u@b.test', 'v@b.test']
const envelopes = to.map((address) => ({ from: 'a@x.test', to: address, needsUtf8: false }))
const messages: [string, string][] = [
  ['plain', 'Subject: x\r\n\r\nhello\r\n'],
  ['dots', '.Subject: x\r\n\r\n.\r\n..\r\n.x\r\n\r\n.\r\n'],
  ['8-bit', 'Subject: x\r\n\r\ngrüße\r\n'],
  ['long lines', `Subject: x\r\n\r\n${'y'.repeat(100_000)}\r\n`],
  ['a megabyte', `Subject: x\r\n\r\n${`${'z'.repeat(76)}\r\n`.repeat(14_000)}`],
]

test('check 42: nodemailer and this client deliver the same bytes', async (context) => {
  const { taken, port } = await farSide(context, {})
  const connection = await reach(context, port)
  assert.equal(connection.remote.tls, 'TLSv1.3')
  const transport = createTransport({
    host: '127.0.0.1',
    port,
    name: 'me.test',
    tls: { rejectUnauthorized: false },
  })
  for (const [name, raw] of messages) {
    const { recipients, fault } = await connection.send(envelopes, Buffer.from(raw))
    assert.deepEqual([recipients.map(({ outcome }) => outcome), fault], [['delivered', 'delivered'], null])
    await transport.sendMail({ envelope: { from: 'a@x.test', to }, raw })
    const [one, other, theirs] = taken.splice(0)
    assert.ok(one && other && theirs)
    for (const ours of [one, other]) {
      assert.deepEqual([ours.from, ours.secure], [theirs.from, theirs.secure])
      assert.ok(ours.raw.equals(theirs.raw), name)
      assert.ok(ours.raw.equals(Buffer.from(raw)), name)
    }
    assert.deepEqual([...one.to, ...other.to], theirs.to)
  }
  transport.close()
  await connection.quit()
})

test('the client delivers to nodemailer’s server without STARTTLS and 8BITMIME, and with AUTH', async (context) => {
  const options = { disabledCommands: ['STARTTLS'], hide8BITMIME: true, allowInsecureAuth: true }
  const { taken, port } = await farSide(context, options)
  const connection = await reach(context, port, { auth: { user: 'ada', password: 'secret' } })
  assert.equal(connection.remote.tls, null)
  const { recipients } = await connection.send(envelopes, Buffer.from('Subject: x\r\n\r\nhello\r\n'))
  assert.equal(recipients[0]?.outcome, 'delivered')
  const [eightBit] = (await connection.send(envelopes, Buffer.from('ü'))).recipients
  assert.ok(eightBit && 'reply' in eightBit)
  assert.equal(eightBit.reply.enhanced, '5.6.3')
  assert.equal(taken.length, 2)
  await connection.quit()
})

test('the client delivers to nodemailer’s server with implicit TLS', async (context) => {
  const { taken, port } = await farSide(context, { secure: true })
  const connection = await reach(context, port, { tls: 'implicit', tlsVerify: 'none' })
  assert.equal(connection.remote.tls, 'TLSv1.3')
  await connection.send(envelopes, Buffer.from('Subject: x\r\n\r\nhello\r\n'))
  assert.equal(taken[0]?.secure, true)
  await connection.quit()
})

function toOne(to: string) {
  return { from: '', to, needsUtf8: false }
}

test('the client delivers to our own server with TLS, CHUNKING and PIPELINING, unchanged, with each recipient’s result', async (context) => {
  const { port, recorder } = await startMx(context, { maxSizeBytes: 2_000_000 })
  const connection = await reach(context, port)
  assert.deepEqual([connection.remote.tls, connection.extensions.has('CHUNKING')], ['TLSv1.3', true])
  const envelopes = ['u@our.test', 'unknown@our.test', 'u@else.test', 'u@our.test'].map(toOne)
  for (const [name, raw] of messages) {
    const body = Buffer.from(raw)
    const { recipients, fault } = await connection.send(envelopes, body)
    const codes = recipients.map((one) => ('reply' in one ? (one.reply.enhanced ?? '') : one.outcome))
    assert.deepEqual([codes, fault], [['2.0.0', '5.1.1', '5.7.1', '2.0.0'], null], name)
    for (const { content } of recorder.got.splice(0)) assert.ok(content.equals(body), name)
  }
  const nobody = await connection.send([toOne('unknown@our.test')], Buffer.from('x\r\n'))
  assert.equal(nobody.recipients[0]?.outcome, 'refused')
  const utf8 = { from: '', to: 'ü@our.test', needsUtf8: true }
  const after = await connection.send([utf8], Buffer.from('x: y\r\n'))
  assert.equal(after.recipients[0]?.outcome, 'delivered')
  await connection.quit()
})

/**
 * Starts Debian's smtp-sink, which writes each mail to a file in `folder`. Skips the test and returns null if it is not
 * installed.
 */
async function smtpSink(context: TestContext, folder: string, ...options: string[]): Promise<number | null> {
  const port = await freePort()
  const as = process.getuid?.() === 0 ? ['-u', 'root'] : []
  const child = spawn(
    '/usr/sbin/smtp-sink',
    [...as, ...options, '-d', `${folder}/`, `127.0.0.1:${port}`, '50'],
    {
      stdio: 'ignore',
    },
  )
  const failed = await new Promise<Error | null>((resolve) => {
    child.once('error', resolve)
    child.once('spawn', () => resolve(null))
  })
  if (failed) {
    assert.ok(!process.env['CI'], 'smtp-sink is not installed')
    context.skip('smtp-sink is not installed')
    return null
  }
  context.after(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  await until('smtp-sink to listen', async () => {
    const opened = await connect({
      host: 'sink',
      address: '127.0.0.1',
      port,
      ehloName: 'me.test',
      tls: 'none',
    })
    if ('connection' in opened) await opened.connection.quit()
    return 'connection' in opened
  })
  return port
}

test('smtp-sink accepts messages over one connection, pipelined and in lock-step', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-sink-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const options of [[], ['-p']]) {
    const port = await smtpSink(context, folder, ...options)
    if (port === null) return
    const connection = await reach(context, port)
    assert.equal(connection.extensions.has('PIPELINING'), options.length === 0)
    for (let round = 0; round < 20; round++) {
      const body = Buffer.from(`Subject: ${round}\r\n\r\n.dot\r\nlast\r\n`)
      const { recipients } = await connection.send(envelopes, body)
      assert.deepEqual(
        recipients.map(({ outcome }) => outcome),
        ['delivered', 'delivered'],
      )
    }
    await connection.quit()
    const files = readdirSync(folder)
    assert.equal(files.length, 40)
    for (const file of files) {
      assert.match(readFileSync(join(folder, file), 'utf8'), /\n\.dot\r?\nlast\r?\n/)
      rmSync(join(folder, file))
    }
  }
})

test('smtp-sink refuses and hangs up at every command, and the client reports each case', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-sink-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const wanted: [options: string[], outcome: string][] = [
    [['-f', 'mail'], 'refused mail'],
    [['-r', 'rcpt'], 'refused rcpt'],
    [['-r', 'data'], 'refused data'],
    [['-f', '.'], 'refused message'],
    [['-Q', 'rcpt'], 'refused rcpt'],
    [['-Q', 'data'], 'refused data'],
    [['-q', 'rcpt'], 'untried'],
    [['-q', '.'], 'unknown'],
  ]
  for (const [options, outcome] of wanted) {
    const port = await smtpSink(context, folder, ...options)
    if (port === null) return
    const connection = await reach(context, port)
    const { recipients } = await connection.send(envelopes, Buffer.from('Subject: x\r\n\r\nx\r\n'))
    const [one] = recipients
    assert.equal(
      one && ('stage' in one ? `${one.outcome} ${one.stage}` : one.outcome),
      outcome,
      options.join(' '),
    )
    connection.destroy()
  }
})
