// Plays transcripts of whole conversations with the real server: order, parameters, limits and refusals.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Mx, startMx } from './mx.ts'
import { play } from './talk.ts'

const hello = `S: 220 mx.test ESMTP Posthorn
  C: EHLO client.test
  S: 250-mx.test
  S: 250-PIPELINING
  S: 250-SIZE 100000
  S: 250-8BITMIME
  S: 250-SMTPUTF8
  S: 250-ENHANCEDSTATUSCODES
  S: 250-CHUNKING
  S: 250-BINARYMIME
  S: 250-LIMITS RCPTMAX=3 MAILMAX=1000
  S: 250 STARTTLS
`
const oneRecipient = `${hello}
  C: MAIL FROM:<a@x.test>
  S: 250 2.1.0 *
  C: RCPT TO:<u@our.test>
  S: 250 2.1.5 *
`
const quit = `
  C: QUIT
  S: 221 2.0.0 Bye
  S.`

/** A transcript, and checks on the recorded messages afterwards. By default no message was recorded. */
interface Case {
  name: string
  transcript: string
  messages?: string[]
  also?: (mx: Mx) => void
}

const cases: Case[] = [
  {
    name: 'check 28: a message in lock-step is accepted and its bytes are kept',
    transcript: `${oneRecipient}
      C: DATA
      S: 354 *
      C: Subject: hello
      C: 
      C: ..dot
      C: .
      S: 250 2.0.0 Accepted ${quit}`,
    messages: ['Subject: hello\r\n\r\n.dot\r\n'],
    also: ({ recorder }) => {
      const { peer, from, to } = recorder.got[0]!.envelope
      assert.deepEqual(
        { helo: peer.helo, address: peer.address, protocol: peer.protocol, tls: peer.tls },
        {
          helo: 'client.test',
          address: '127.0.0.1',
          protocol: 'ESMTP',
          tls: { encrypted: false, protocol: 'none', cipher: 'none' },
        },
      )
      assert.equal(from.address, 'a@x.test')
      assert.deepEqual(to, [{ localPart: 'u', domain: 'our.test', address: 'u@our.test' }])
    },
  },
  {
    name: 'pipelined groups are answered in order, two messages on one connection',
    transcript: `${hello}
      C: MAIL FROM:<>
      C: RCPT TO:<unknown@our.test>
      C: RCPT TO:<u@our.test>
      C: DATA
      S: 250 2.1.0 *
      S: 550 5.1.1 No such mailbox
      S: 250 2.1.5 *
      S: 354 *
      C: one
      C: .
      C: MAIL FROM:<b@x.test> SIZE=10 BODY=8BITMIME
      C: RCPT TO:<v@our.test>
      C: DATA
      S: 250 2.0.0 Accepted
      S: 250 2.1.0 *
      S: 250 2.1.5 *
      S: 354 *
      C: two
      C: .
      C: QUIT
      S: 250 2.0.0 Accepted
      S: 221 2.0.0 Bye
      S.`,
    messages: ['one\r\n', 'two\r\n'],
    also: ({ recorder }) => {
      assert.equal(recorder.got[0]!.envelope.from.address, '')
      const { sizeBytes, body, needsUtf8 } = recorder.got[1]!.envelope.from
      assert.deepEqual({ sizeBytes, body, needsUtf8 }, { sizeBytes: 10, body: '8BITMIME', needsUtf8: false })
    },
  },
  {
    name: 'check 19: commands out of order are 503, RSET and EHLO clear the envelope',
    transcript: `S: 220 *
      C: MAIL FROM:<a@x.test>
      S: 503 5.5.1 *
      C: DATA
      S: 503 5.5.1 *
      C: HELO client.test
      S: 250 mx.test
      C: RCPT TO:<u@our.test>
      S: 503 5.5.1 *
      C: MAIL FROM:<a@x.test>
      S: 250 2.1.0 *
      C: MAIL FROM:<b@x.test>
      S: 503 5.5.1 *
      C: DATA
      S: 503 5.5.1 *
      C: RCPT TO:<u@our.test>
      S: 250 2.1.5 *
      C: RSET
      S: 250 2.0.0 *
      C: DATA
      S: 503 5.5.1 *
      C: MAIL FROM:<a@x.test>
      S: 250 2.1.0 *
      C: RCPT TO:<u@our.test>
      S: 250 2.1.5 *
      C: HELO again.test
      S: 250 mx.test
      C: RCPT TO:<u@our.test>
      S: 503 5.5.1 * ${quit}`,
  },
  {
    name: 'check 9: SIZE over the limit is 552 at MAIL, the true size over it 552 after the dot',
    transcript: `${hello}
      C: MAIL FROM:<a@x.test> SIZE=100001
      S: 552 5.3.4 *
      C: MAIL FROM:<a@x.test> SIZE=100000
      S: 250 2.1.0 *
      C: RCPT TO:<u@our.test>
      S: 250 2.1.5 *
      C: DATA
      S: 354 *
      C: ${'x'.repeat(100_000)}
      C: MAIL FROM:<smuggled@x.test>
      C: .
      S: 552 5.3.4 *
      C: RCPT TO:<u@our.test>
      S: 503 5.5.1 * ${quit}`,
    also: ({ recorder }) => assert.equal(recorder.aborted, 1),
  },
  {
    name: 'check 12: the recipient past the limit is 452 and the earlier ones are kept',
    transcript: `${hello}
      C: MAIL FROM:<a@x.test>
      C: RCPT TO:<u1@our.test>
      C: RCPT TO:<u2@our.test>
      C: RCPT TO:<u3@our.test>
      C: RCPT TO:<u4@our.test>
      C: DATA
      S: 250 *
      S: 250 *
      S: 250 *
      S: 250 *
      S: 452 4.5.3 *
      S: 354 *
      C: body
      C: .
      S: 250 2.0.0 * ${quit}`,
    messages: ['body\r\n'],
    also: ({ recorder }) =>
      assert.deepEqual(
        recorder.got[0]!.envelope.to.map(({ localPart }) => localPart),
        ['u1', 'u2', 'u3'],
      ),
  },
  {
    name: 'check 26: VRFY is 252 and EXPN 502, for any name',
    transcript: `${hello}
      C: VRFY u
      S: 252 2.5.0 *
      C: VRFY unknown
      S: 252 2.5.0 *
      C: EXPN list
      S: 502 5.5.1 *
      C: HELP
      S: 214 2.0.0 *
      C: NOOP whatever
      S: 250 2.0.0 * ${quit}`,
  },
  {
    name: 'check 21: an address beyond ASCII needs SMTPUTF8',
    transcript: `${hello}
      C: MAIL FROM:<ü@x.test>
      S: 553 5.6.7 *
      C: MAIL FROM:<a@x.test>
      S: 250 *
      C: RCPT TO:<ü@our.test>
      S: 553 5.6.7 *
      C: RSET
      S: 250 *
      C: MAIL FROM:<ü@bücher.test> SMTPUTF8
      S: 250 *
      C: RCPT TO:<ö@our.test>
      S: 250 *
      C: DATA
      S: 354 *
      C: Subject: ä
      C: .
      S: 250 * ${quit}`,
    messages: ['Subject: ä\r\n'],
    also: ({ recorder }) => {
      const { from, to, peer } = recorder.got[0]!.envelope
      assert.deepEqual(
        [from.address, to[0]!.address, peer.protocol],
        ['ü@xn--bcher-kva.test', 'ö@our.test', 'UTF8SMTP'],
      )
    },
  },
  {
    name: 'REQUIRETLS is announced and taken only within TLS',
    transcript: `${hello}
      C: MAIL FROM:<a@x.test> REQUIRETLS
      S: 530 5.7.10 *
      C: STARTTLS
      S: 220 *
      T.
      C: EHLO client.test
      ${'S: 250-*\n'.repeat(9)}
      S: 250 REQUIRETLS
      C: MAIL FROM:<a@x.test> REQUIRETLS
      S: 250 2.1.0 *
      C: RCPT TO:<u@our.test>
      S: 250 2.1.5 *
      C: DATA
      S: 354 *
      C: .
      S: 250 2.0.0 * ${quit}`,
    messages: [''],
  },
  {
    name: 'check 27: parameters that were not announced are 555 and no reply repeats them',
    transcript: `${hello}
      C: MAIL FROM:<a@x.test> RET=HDRS ENVID=a+0D+0A250
      S: 555 5.5.4 Parameter not recognized
      C: MAIL FROM:<a@x.test> AUTH=<>
      S: 555 5.5.4 *
      C: MAIL FROM:<a@x.test> SIZE=1 SIZE=2
      S: 501 5.5.4 *
      C: MAIL FROM:<a@x.test> SIZE=x
      S: 501 5.5.4 *
      C: MAIL FROM:<a@x.test> BODY=16BIT
      S: 501 5.5.4 *
      C: MAIL FROM:<a@x.test>
      S: 250 *
      C: RCPT TO:<u@our.test> NOTIFY=NEVER
      S: 555 5.5.4 *
      C= "NOOP a\\rb\\r\\n"
      S: 500 5.5.2 *
      C= "NOOP \\u0007\\r\\n"
      S: 500 5.5.2 *
      C= "NOOP\\n"
      S: 500 5.5.2 * ${quit}`,
  },
  {
    name: 'check 27: control bytes in HELO are refused',
    transcript: `S: 220 *
      C= "HELO a\\r250 injected\\r\\n"
      S: 500 5.5.2 *
      C: HELO
      S: 501 5.5.4 *
      C: HELO ünï
      S: 250 mx.test ${quit}`,
  },
  ...['GET / HTTP/1.1', 'POST /x HTTP/1.1', 'CONNECT www.example:80 HTTP/1.1'].map((request) => ({
    name: `check 6: ${request} is refused at once`,
    transcript: `S: 220 *
      C: ${request}
      C: Host: mx.test
      C: 
      C: HELO x
      C: MAIL FROM:<a@x.test>
      S: 500 5.5.1 *
      S.`,
  })),
  {
    name: 'check 5: commands after EHLO in one segment end the connection',
    transcript: `S: 220 *
      C: EHLO client.test
      C: MAIL FROM:<a@x.test>
      S: 554 5.5.0 *
      S.`,
  },
  {
    name: 'check 5: a message after DATA in one segment ends the connection',
    transcript: `${oneRecipient}
      C: DATA
      C: Subject: x
      C: .
      S: 554 5.5.0 *
      S.`,
  },
  {
    name: 'check 5: a message after a refused DATA is not executed as commands',
    transcript: `${hello}
      C: DATA
      C: RSET
      S: 554 5.5.0 *
      S.`,
  },
  {
    name: 'check 7: a command line over 512 octets, or over 2,048 with a path, is 500',
    transcript: `${hello}
      C: NOOP ${'x'.repeat(505)}
      S: 250 *
      C: NOOP ${'x'.repeat(506)}
      S: 500 5.5.2 *
      C: MAIL FROM:<${'x'.repeat(300)}@x.test>
      S: 501 5.1.7 *
      C: MAIL FROM:<${'x'.repeat(2100)}@x.test>
      S: 500 5.5.2 *
      C: MAIL FROM:<a@x.test>
      S: 250 *
      C: RCPT TO:<u@${'x'.repeat(300)}.our.test>
      S: 501 5.1.3 * ${quit}`,
  },
  {
    name: 'check 18: after 20 errors the next one is 421',
    transcript: `${hello}${'C: WHAT\nS: 500 5.5.1 *\n'.repeat(20)}
      C: NOOP
      S: 250 *
      C: WHAT
      S: 421 4.7.0 Too many errors
      S.`,
  },
  {
    name: 'check 26: a harvest of names ends after 20 refusals',
    transcript: `${hello}
      C: MAIL FROM:<a@x.test>
      S: 250 *
      ${'C: RCPT TO:<unknown@our.test>\nS: 550 5.1.1 *\n'.repeat(20)}
      C: RCPT TO:<u@our.test>
      S: 250 *
      C: RCPT TO:<unknown@our.test>
      S: 421 4.7.0 *
      S.`,
  },
  {
    name: 'check 10: a disguised relay address reaches the backend undisguised',
    transcript: `${hello}
      C: MAIL FROM:<a@x.test>
      S: 250 *
      C: RCPT TO:<@our.test,@b.test:c@d.test>
      S: 550 5.7.1 *
      C: RCPT TO:<"u@our.test"@d.test>
      S: 550 5.7.1 *
      C: RCPT TO:<d.test!u@our.test>
      S: 250 *
      C: RCPT TO:<u%d.test@OUR.test.>
      S: 250 *
      C: RCPT TO:<u@our.test@d.test>
      S: 501 5.1.3 *
      C: RCPT TO:<u@[127.0.0.1]>
      S: 550 5.7.1 *
      C: RCPT TO:<postmaster>
      S: 550 5.7.1 *
      C: RCPT TO:<>
      S: 501 5.1.3 * ${quit}`,
    also: ({ recorder }) =>
      assert.deepEqual(
        recorder.asked.map(({ localPart, domain, address }) => [localPart, domain, address]),
        [
          ['c', 'd.test', 'c@d.test'],
          ['u@our.test', 'd.test', '"u@our.test"@d.test'],
          ['d.test!u', 'our.test', 'd.test!u@our.test'],
          ['u%d.test', 'our.test', 'u%d.test@our.test'],
          ['u', '[127.0.0.1]', 'u@[127.0.0.1]'],
          ['postmaster', 'mx.test', 'postmaster@mx.test'],
        ],
      ),
  },
  {
    name: 'check 24: a PROXY header from a peer that is not trusted is a bad command',
    transcript: `S: 220 *
      C: PROXY TCP4 192.0.2.7 192.0.2.1 4711 25
      S: 500 5.5.1 *
      C: HELO x
      S: 250 * ${quit}`,
  },
]

for (const { name, transcript, messages = [], also } of cases) {
  test(name, async (t) => {
    const mx = await startMx(t)
    await play(t, mx.port, transcript)
    assert.deepEqual(
      mx.recorder.got.map(({ content }) => content.toString()),
      messages,
    )
    assert.deepEqual(mx.errors, [])
    also?.(mx)
  })
}
