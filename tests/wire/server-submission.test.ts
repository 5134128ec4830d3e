// Transcripts of the submission server: AUTH over TLS only, its exchanges and refusals, and TLS from the start.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { reply } from '../../src/smtp/reply.ts'
import type { Gate } from '../../src/smtp/server/backend.ts'
import type { SmtpServerOptions } from '../../src/smtp/server/server-options.ts'
import { type Mx, Recorder, startMx } from './mx.ts'
import { play, Talk } from './talk.ts'

const inBase64 = (text: string) => Buffer.from(text).toString('base64')
const plain = inBase64('\0anyone\0secret')
const hello = `S: 220 mx.test ESMTP Posthorn
  C: EHLO c.test
  S: 250-mx.test
  S: 250-PIPELINING
  S: 250-SIZE 100000
  S: 250-8BITMIME
  S: 250-SMTPUTF8
  S: 250-ENHANCEDSTATUSCODES
  S: 250-CHUNKING
  S: 250-LIMITS *`
const secured = `${hello}
  S: 250 STARTTLS
  C: STARTTLS
  S: 220 *
  T.
  C: EHLO c.test
  S: 250-mx.test
  S: 250-PIPELINING
  S: 250-SIZE *
  S: 250-8BITMIME
  S: 250-SMTPUTF8
  S: 250-ENHANCEDSTATUSCODES
  S: 250-CHUNKING
  S: 250-LIMITS *
  S: 250-REQUIRETLS
  S: 250 AUTH PLAIN LOGIN`

async function startGate(
  t: TestContext,
  tls: Gate['tls'],
  overrides: Partial<SmtpServerOptions> = {},
): Promise<Mx & { taken: Recorder; addresses: string[] }> {
  const taken = new Recorder()
  const addresses: string[] = []
  const admit = async (secret: string, address: string) => {
    addresses.push(address)
    return secret === 'secret' ? taken : reply(535, '5.7.8', 'Wrong')
  }
  return { ...(await startMx(t, { backend: { tls, admit }, ...overrides })), taken, addresses }
}

const cases: [name: string, transcript: string][] = [
  [
    'before TLS everything but EHLO, NOOP, STARTTLS and QUIT is 530',
    `${hello}
      S: 250 STARTTLS
      C: AUTH PLAIN ${plain}
      S: 530 5.7.0 *
      C: MAIL FROM:<a@x.test>
      S: 530 5.7.0 *
      C: NOOP
      S: 250 *
      C: QUIT
      S: 221 *`,
  ],
  [
    'MAIL needs a login, and a login is made once',
    `${secured}
      C: MAIL FROM:<a@x.test>
      S: 530 5.7.0 Authentication required
      C: AUTH PLAIN ${plain}
      S: 235 2.7.0 *
      C: AUTH PLAIN ${plain}
      S: 503 5.5.1 *
      C: MAIL FROM:<a@x.test> BODY=BINARYMIME
      S: 501 5.5.4 *
      C: MAIL FROM:<a@x.test> AUTH=<>
      S: 250 *
      C: AUTH LOGIN
      S: 503 5.5.1 *
      C: QUIT
      S: 221 *`,
  ],
  [
    'AUTH LOGIN asks for a user name and a password, and PLAIN may come after the challenge',
    `${secured}
      C: AUTH LOGIN
      S: 334 VXNlcm5hbWU6
      C: ${inBase64('anyone')}
      S: 334 UGFzc3dvcmQ6
      C: ${inBase64('wrong')}
      S: 535 5.7.8 *
      C: AUTH LOGIN ${inBase64('anyone')}
      S: 334 UGFzc3dvcmQ6
      C: *
      S: 501 5.7.0 *
      C: AUTH PLAIN
      S: 334 *
      C: ${plain}
      S: 235 *
      C: QUIT
      S: 221 *`,
  ],
  [
    'a malformed exchange is refused, and no mechanism but PLAIN and LOGIN',
    `${secured}
      C: AUTH CRAM-MD5
      S: 504 5.5.4 *
      C: AUTH PLAIN
      S: 334 *
      C: no base64!
      S: 501 5.5.2 *
      C: AUTH PLAIN ${inBase64('secret')}
      S: 501 5.5.2 *
      C: AUTH PLAIN =
      S: 501 5.5.2 *
      C: AUTH LOGIN
      S: 334 *
      C: ${'A'.repeat(12_300)}
      S: 500 5.5.6 *
      C: NOOP
      S: 250 *
      C: QUIT
      S: 221 *`,
  ],
]
for (const [name, transcript] of cases)
  test(name, async (t) => {
    const { port, errors } = await startGate(t, 'starttls')
    await play(t, port, transcript)
    assert.deepEqual(errors, [])
  })

test('a smuggled second message is refused, as on port 25', async (t) => {
  const { port, taken } = await startGate(t, 'starttls')
  const smuggled = 'Subject: a\r\n\r\nx\n.\r\nMAIL FROM:<evil@x.test>\r\n.\r\n'
  await play(
    t,
    port,
    `${secured}
      C: AUTH PLAIN ${plain}
      S: 235 *
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u@our.test>
      C: DATA
      S: 250 *
      S: 250 *
      S: 354 *
      C= ${JSON.stringify(smuggled)}
      S: 550 5.6.0 *
      C: QUIT
      S: 221 *`,
  )
  assert.equal(taken.got.length, 0)
})

for (const [name, isTrusted, header, seen] of [
  ['a client', () => false, '', '127.0.0.1'],
  ['a trusted client', () => true, '', '127.0.0.1'],
  [
    'a client of a trusted proxy',
    (ip: string) => ip === '127.0.0.1',
    'PROXY TCP4 192.0.2.7 192.0.2.1 5000 465\r\n',
    '192.0.2.7',
  ],
] as const)
  test(`TLS from the start: ${name} is greeted within TLS`, async (t) => {
    const { port, addresses } = await startGate(t, 'implicit', { isTrusted })
    const talk = await Talk.connect(t, port)
    if (header) talk.write(header)
    await talk.secure()
    assert.match((await talk.reply())!, /^220 /)
    assert.match((await talk.ask('EHLO c.test'))!, /AUTH PLAIN LOGIN$/)
    assert.match((await talk.ask(`AUTH PLAIN ${plain}`))!, /^235 /)
    assert.deepEqual(addresses, [seen])
  })

test('plain text at a port with TLS from the start ends the connection', async (t) => {
  const { port } = await startGate(t, 'implicit')
  const talk = await Talk.connect(t, port)
  talk.write('EHLO c.test\r\n')
  assert.doesNotMatch((await talk.line()) ?? '', /^\d/)
})

test('wrong keys are answered ever later, and then the address is blocked', async (t) => {
  const { port } = await startGate(t, 'implicit', { limits: { maxErrorsPerAddress: 2 } })
  const talk = await Talk.connect(t, port)
  await talk.secure()
  await talk.reply()
  await talk.ask('EHLO c.test')
  const wrong = `AUTH PLAIN ${inBase64('\0a\0wrong')}`
  const answers: (string | null)[] = []
  for (let n = 0; n < 4; n++) answers.push((await talk.ask(wrong))?.slice(0, 3) ?? null)
  assert.deepEqual(answers, ['535', '535', '535', '421'])
})
