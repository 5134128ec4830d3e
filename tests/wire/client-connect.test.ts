// Tests the SMTP client before its first transaction: banner, EHLO, STARTTLS, AUTH, and peers that lie.
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { type TestContext, test } from 'node:test'
import { type ConnectOptions, connect } from '../../src/smtp/client/client.ts'
import { until } from '../support/until.ts'
import { certificate, play } from './client-script.ts'

const timeLimit = { connectMs: 2000, bannerMs: 300, ehloMs: 300, quitMs: 300 }

async function reach(context: TestContext, script: string, options: Partial<ConnectOptions> = {}) {
  const { port, ended } = await play(context, script)
  const opened = await connect({
    host: 'mx.test',
    address: '127.0.0.1',
    port,
    ehloName: 'me.test',
    tls: 'none',
    timeouts: timeLimit,
    ...options,
  })
  if ('connection' in opened) context.after(() => opened.connection.destroy())
  return { opened, ended }
}

interface Failing {
  name: string
  script: string
  fault: string
  message?: RegExp
  code?: number
  options?: Partial<ConnectOptions>
}

const required: Partial<ConnectOptions> = { tls: 'required', tlsAuthorities: certificate }
const auth = { user: 'ada', password: 'secret' }
/** The options for a server whose domain has an MTA-STS policy. */
function policy(mode: 'enforce' | 'testing', isListed = true): Partial<ConnectOptions> {
  const requirement = { kind: 'mta-sts', mode, isListed } as const
  return { tls: 'opportunistic', tlsAuthorities: certificate, requirement }
}
const enforce = policy('enforce')
const greeting = 'S: 220 mx.test\nC: EHLO me.test'
const starting = `${greeting}\nS: 250-mx.test\nS: 250 STARTTLS\nC: STARTTLS`
const secured = `${starting}\nS: 220 go\ntls\nC: EHLO me.test`

const failing: Failing[] = [
  { name: 'a banner of 421', script: 'S: 421 4.3.2 busy\ngone', fault: 'refused', code: 421 },
  { name: 'a banner of 554', script: 'S: 554-go\nS: 554 away\nclose', fault: 'refused', code: 554 },
  { name: 'no banner', script: 'silence', fault: 'timeout', message: /300 ms/ },
  { name: 'a banner of 354', script: 'S: 354 what\ngone', fault: 'protocol', code: 354 },
  { name: 'check 32: an HTTP banner', script: 'S: HTTP/1.1 200 OK\ngone', fault: 'protocol' },
  { name: 'check 32: a banner of 999', script: 'S: 999 hi\ngone', fault: 'protocol' },
  { name: 'check 32: a banner of binary', script: 'S! \\u0016\\u0003\\u0001\\n\ngone', fault: 'protocol' },
  {
    name: 'check 32: a megabyte of banner',
    script: `S! 220 ${'x'.repeat(1 << 20)}\ngone`,
    fault: 'protocol',
  },
  {
    name: 'check 32: banner lines without end',
    script: `S! ${'220-x\\r\\n'.repeat(1000)}\ngone`,
    fault: 'protocol',
  },
  { name: 'check 32: a banner without line end', script: 'S! 220 hi\nsilence', fault: 'timeout' },
  { name: 'an end instead of a banner', script: 'close', fault: 'closed' },
  { name: 'a reset instead of an answer to EHLO', script: `${greeting}\nreset`, fault: 'closed' },
  { name: '421 to EHLO', script: `${greeting}\nS: 421 4.7.0 no\ngone`, fault: 'refused', code: 421 },
  { name: '450 to EHLO', script: `${greeting}\nS: 450 later\ngone`, fault: 'refused', code: 450 },
  {
    name: 'EHLO and HELO refused',
    script: `${greeting}\nS: 500 what\nC: HELO me.test\nS: 501 no\ngone`,
    fault: 'refused',
    code: 501,
  },
  {
    name: 'EHLO refused, and the end',
    script: `${greeting}\nS: 554 5.7.1 blocked\nclose`,
    fault: 'refused',
    code: 554,
  },
  { name: 'no answer to EHLO', script: `${greeting}\nsilence`, fault: 'timeout' },
  { name: 'half an answer to EHLO', script: `${greeting}\nS: 250-mx.test\nclose`, fault: 'closed' },
  {
    name: 'two answers to EHLO',
    script: `${greeting}\nS! 250 mx.test\\r\\n250 again\\r\\n\ngone`,
    fault: 'protocol',
  },
  {
    name: 'TLS required, not offered',
    script: `${greeting}\nS: 250 mx.test\ngone`,
    fault: 'tls',
    options: required,
  },
  { name: 'TLS required, refused', script: `${starting}\nS: 454 no\ngone`, fault: 'tls', options: required },
  {
    name: 'STARTTLS answered 421',
    script: `${starting}\nS: 421 no\ngone`,
    fault: 'refused',
    code: 421,
    options: { tls: 'opportunistic' },
  },
  {
    name: 'check 37: a reply injected after the 220',
    script: `${starting}\nS! 220 go\\r\\n250 injected\\r\\n\ngone`,
    fault: 'protocol',
    options: { tls: 'opportunistic' },
  },
  {
    name: 'check 37: half a reply injected after the 220',
    script: `${starting}\nS! 220 go\\r\\n250-inj\ngone`,
    fault: 'protocol',
    options: { tls: 'opportunistic' },
  },
  {
    name: 'check 35: a handshake that fails',
    script: `${starting}\nS: 220 go\nsomething\nS: this is no TLS\ngone`,
    fault: 'tls',
    options: { tls: 'opportunistic' },
  },
  {
    name: 'check 35: a handshake that is cut',
    script: `${starting}\nS: 220 go\nsomething\nreset`,
    fault: 'tls',
    options: { tls: 'opportunistic' },
  },
  {
    name: 'a handshake without end',
    script: `${starting}\nS: 220 go\nsilence`,
    fault: 'timeout',
    options: { tls: 'opportunistic' },
  },
  {
    name: 'a certificate of nobody we know',
    script: `${secured}\ngone`,
    fault: 'tls',
    options: { tls: 'required' },
  },
  {
    name: 'a certificate for another name',
    script: `${secured}\ngone`,
    fault: 'tls',
    message: /other\.test/,
    options: { ...required, host: 'other.test' },
  },
  {
    name: 'check 36: an enforced policy, and TLS is not offered',
    script: `${greeting}\nS: 250 mx.test\ngone`,
    fault: 'tls',
    message: /^MTA-STS policy \(enforce\): the server does not start TLS$/,
    options: enforce,
  },
  {
    name: 'check 36: an enforced policy, and TLS is refused',
    script: `${starting}\nS: 454 no\ngone`,
    fault: 'tls',
    message: /the server does not start TLS/,
    options: enforce,
  },
  {
    name: 'check 36: an enforced policy, and a handshake that fails',
    script: `${starting}\nS: 220 go\nsomething\nS: this is no TLS\ngone`,
    fault: 'tls',
    options: enforce,
  },
  {
    name: 'check 36: an enforced policy, and a certificate of an unknown authority',
    script: `${starting}\nS: 220 go\ntls\ngone`,
    fault: 'tls',
    message: /: its certificate is self-signed$/,
    options: { tls: 'opportunistic', requirement: enforce.requirement! },
  },
  {
    name: 'check 36: an enforced policy, and a certificate for another name',
    script: `${starting}\nS: 220 go\ntls\ngone`,
    fault: 'tls',
    message: /: its certificate is not for other\.test$/,
    options: { ...enforce, host: 'other.test' },
  },
  {
    name: 'check 36: an enforced policy that does not name the server',
    script: `${starting}\nS: 220 go\ntls\ngone`,
    fault: 'tls',
    message: /: the policy does not name this mail server$/,
    options: policy('enforce', false),
  },
  {
    name: 'AUTH refused',
    script: `${greeting}\nS: 250-mx.test\nS: 250 AUTH PLAIN\nC: AUTH PLAIN AGFkYQBzZWNyZXQ=\nS: 535 5.7.8 no\ngone`,
    fault: 'refused',
    code: 535,
    options: { auth },
  },
  {
    name: 'AUTH without TLS to an address that is not loopback',
    script: `${greeting}\nS: 250-mx.test\nS: 250 AUTH PLAIN\ngone`,
    fault: 'tls',
    // Linux treats the unspecified address as this host. The client knows only that it is not in 127.0.0.0/8.
    options: { auth, address: '0.0.0.0' },
  },
  {
    name: 'AUTH not offered',
    script: `${greeting}\nS: 250-mx.test\nS: 250 AUTH GSSAPI\ngone`,
    fault: 'protocol',
    options: { auth },
  },
]

for (const { name, script, fault, message = /./, code, options } of failing) {
  test(`a failed connection reports its fault: ${name}`, async (context) => {
    const { opened } = await reach(context, script, options)
    assert.ok('fault' in opened)
    assert.equal(opened.fault.kind, fault, opened.fault.message)
    assert.match(opened.fault.message, message)
    assert.equal(opened.reply?.code, code)
    assert.ok(opened.fault.message.length <= 500)
  })
}

test('an address without a listener is a connect fault', async () => {
  const opened = await connect({
    host: 'mx.test',
    address: '127.0.0.1',
    port: 1,
    ehloName: 'me.test',
    tls: 'none',
  })
  assert.ok('fault' in opened)
  assert.equal(opened.fault.kind, 'connect')
})

test('HELO follows a refused EHLO, and offers no extensions', async (context) => {
  const script = `${greeting}\nS: 502 what\nC: HELO me.test\nS: 250-mx.test\nS: 250 PIPELINING\nC: QUIT\nS: 221 bye`
  const { opened, ended } = await reach(context, script)
  assert.ok('connection' in opened)
  assert.deepEqual([...opened.connection.extensions], [])
  await opened.connection.quit()
  assert.equal(await ended, null)
})

test('extensions are read in any case, and an invalid keyword is left out', async (context) => {
  const lines = ['pipelining', 'SIZE 1000', 'AUTH=LOGIN', 'AUTH PLAIN', '*** spaces', 'X-Odd_One', '']
  const script = `${greeting}\nS: 250-mx.test\n${lines.map((line) => `S: 250-${line}`).join('\n')}\nS: 250 8BITMIME`
  const { opened } = await reach(context, script)
  assert.ok('connection' in opened)
  assert.deepEqual([...opened.connection.extensions], ['PIPELINING', 'SIZE', 'AUTH', '8BITMIME'])
})

test('check 4: after STARTTLS the client asks for the peer’s extensions again', async (context) => {
  const script = `${starting}\nS: 220 go\ntls\nC: EHLO me.test\nS: 250-mx.test\nS: 250 PIPELINING\nC: QUIT\nS: 221 bye`
  for (const options of [{ tls: 'opportunistic' }, required] as Partial<ConnectOptions>[]) {
    const { opened, ended } = await reach(context, script, options)
    assert.ok('connection' in opened, JSON.stringify(opened))
    assert.deepEqual([...opened.connection.extensions], ['PIPELINING'])
    const cipher = 'TLS_AES_256_GCM_SHA384'
    assert.deepEqual(opened.connection.remote, { host: 'mx.test', ip: '127.0.0.1', tls: 'TLSv1.3', cipher })
    await opened.connection.quit()
    assert.equal(await ended, null)
  }
})

test('check 36: an enforced policy is met by a trusted certificate for the name of the server', async (context) => {
  const script = `${secured}\nS: 250 mx.test\nC: QUIT\nS: 221 bye`
  const { opened, ended } = await reach(context, script, enforce)
  assert.ok('connection' in opened, JSON.stringify(opened))
  const { tls, policy, violation } = opened.connection.remote
  assert.deepEqual([tls, policy, violation], ['TLSv1.3', 'mta-sts enforce', undefined])
  await opened.connection.quit()
  assert.equal(await ended, null)
})

test('check 36: a policy in testing refuses no server, and the connection notes each violation', async (context) => {
  const cases: [script: string, options: Partial<ConnectOptions>, violation: string][] = [
    [`${greeting}\nS: 250 mx.test`, policy('testing'), 'the server does not start TLS'],
    [
      `${secured}\nS: 250 mx.test`,
      { ...policy('testing'), tlsAuthorities: '' },
      'its certificate is self-signed',
    ],
    [`${secured}\nS: 250 mx.test`, policy('testing', false), 'the policy does not name this mail server'],
  ]
  for (const [script, options, violation] of cases) {
    const { opened } = await reach(context, script, options)
    assert.ok('connection' in opened, JSON.stringify(opened))
    const { remote } = opened.connection
    assert.deepEqual(
      [remote.policy, remote.violation],
      ['mta-sts testing', `MTA-STS policy (testing): ${violation}`],
    )
  }
})

test('opportunistic TLS continues in plain text if the peer offers none', async (context) => {
  for (const script of [`${starting}\nS: 454 4.7.0 not now`, `${greeting}\nS: 250 mx.test`]) {
    const { opened } = await reach(context, script, { tls: 'opportunistic' })
    assert.ok('connection' in opened)
    assert.equal(opened.connection.remote.tls, null)
  }
})

test('implicit TLS comes before the banner', async (context) => {
  const script = `tls\n${greeting}\nS: 250 mx.test`
  const { opened } = await reach(context, script, { tls: 'implicit', tlsAuthorities: certificate })
  assert.ok('connection' in opened, JSON.stringify(opened))
  assert.equal(opened.connection.remote.tls, 'TLSv1.3')
})

test('the client logs in by AUTH PLAIN, or else LOGIN, at a loopback address', async (context) => {
  const plain = 'S: 250 AUTH LOGIN PLAIN\nC: AUTH PLAIN AGFkYQBzZWNyZXQ=\nS: 235 ok'
  const login =
    'S: 250 AUTH LOGIN\nC: AUTH LOGIN\nS: 334 VXNlcg==\nC: YWRh\nS: 334 UGFzcw==\nC: c2VjcmV0\nS: 235 ok'
  for (const answers of [plain, login]) {
    const { opened, ended } = await reach(context, `${greeting}\nS: 250-mx.test\n${answers}`, { auth })
    assert.ok('connection' in opened, JSON.stringify(opened))
    assert.equal(await ended, null)
  }
})

test('a signal ends the connection at any step', async (context) => {
  const before = new AbortController()
  before.abort()
  const refused = await reach(context, 'silence', { signal: before.signal })
  assert.ok('fault' in refused.opened)
  const during = new AbortController()
  const waiting = reach(context, 'S: 220 mx.test\nC: EHLO me.test\nsilence', {
    signal: during.signal,
    timeouts: { ehloMs: 60_000 },
  })
  setImmediate(() => during.abort())
  const { opened } = await waiting
  assert.ok('fault' in opened)
  assert.equal(opened.fault.message, 'aborted')
})

test('a signal ends a transaction under way', async (context) => {
  const controller = new AbortController()
  const script = `${greeting}\nS: 250 mx.test\nC: MAIL FROM:<a@x.test>\nsilence`
  const { opened } = await reach(context, script, { signal: controller.signal })
  assert.ok('connection' in opened)
  const sending = opened.connection.send(
    [{ from: 'a@x.test', to: 'u@b.test', needsUtf8: false }],
    Buffer.from('x'),
  )
  controller.abort()
  const { recipients, fault } = await sending
  assert.deepEqual(recipients, [{ outcome: 'untried' }])
  assert.equal(fault?.kind, 'closed')
  await until('the signal to be let go', () => getEventListeners(controller.signal, 'abort').length === 0)
})
