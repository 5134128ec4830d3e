// Tests the public listener: it counts peers' behaviour over sessions, queries block lists, and announces and keeps limits.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { meters } from '../../src/base/meters.ts'
import type { Listing } from '../../src/smtp/server/backend.ts'
import type { SmtpServerOptions } from '../../src/smtp/server/server-options.ts'
import type { Scope } from '../support/until.ts'
import { type Mx, startMx } from './mx.ts'
import { Talk } from './talk.ts'

const proxied = { isTrusted: (peer: string) => peer === '127.0.0.1' }

/** Opens a session of the peer and reads its banner. */
async function connect(t: Scope, { port }: Mx, address: string): Promise<Talk> {
  const talk = await Talk.connect(t, port)
  talk.write(`PROXY TCP4 ${address} 192.0.2.25 4000 25\r\n`)
  assert.match((await talk.reply())!, /^220/)
  return talk
}

async function begin(t: Scope, mx: Mx, address: string, ehlo = 'client.test'): Promise<Talk> {
  const talk = await connect(t, mx, address)
  assert.match((await talk.ask(`EHLO ${ehlo}`))!, /^250/)
  return talk
}

async function refusals(reason: string): Promise<number> {
  const { values } = await meters.peersRefused.get()
  return values.find(({ labels }) => labels.reason === reason)?.value ?? 0
}

/** Sends wrong commands until the server hangs up. Returns how long each reply took. */
async function err(talk: Talk, count: number): Promise<{ tookMs: number[]; last: string | null }> {
  const tookMs: number[] = []
  let last: string | null = null
  for (let i = 0; i < count; i++) {
    const startMs = performance.now()
    last = await talk.ask('WHAT')
    tookMs.push(performance.now() - startMs)
    if (last === null || last.startsWith('421')) break
  }
  return { tookMs, last }
}

test('check 18: errors over several sessions are answered ever later, and finally refused', async (t) => {
  const mx = await startMx(t, { ...proxied, limits: { maxErrorsPerAddress: 15 } })
  const before = await refusals('errors')
  const first = await err(await begin(t, mx, '198.51.100.7'), 7)
  assert.equal(first.last?.slice(0, 3), '500')
  const second = await err(await begin(t, mx, '198.51.100.7'), 20)
  assert.match(second.last!, /^421 4\.7\.0 Too many errors, try again later/)
  assert.ok(second.tookMs.at(-2)! > 700, `${second.tookMs.at(-2)} ms`)
  t.diagnostic(`replies took ${second.tookMs.map((ms) => ms.toFixed(0)).join(' ')} ms`)
  // MAIL gets the refusal before any lookup. EHLO alone does not reveal it.
  const third = await begin(t, mx, '198.51.100.7')
  assert.match((await third.ask('MAIL FROM:<a@x.test>'))!, /^421 4\.7\.0/)
  assert.equal(await third.line(), null)
  assert.deepEqual(mx.recorder.asked, [])
  assert.ok((await refusals('errors')) >= before + 2)
  const neighbour = await begin(t, mx, '198.51.100.8')
  assert.match((await neighbour.ask('MAIL FROM:<a@x.test>'))!, /^250/)
  assert.ok((await err(neighbour, 1)).tookMs[0]! < 1_000)
  mx.clock.advance(601_000)
  assert.match((await (await begin(t, mx, '198.51.100.7')).ask('MAIL FROM:<a@x.test>'))!, /^250/)
})

const misdeeds: [string, (talk: Talk) => Promise<unknown>][] = [
  ['an early talker', async (talk) => talk.ask('EHLO x\r\nMAIL FROM:<a@x.test>')],
  ['a flood without a line end', async (talk) => talk.ask('x'.repeat(17_000))],
  ['a browser', async (talk) => talk.ask('GET / HTTP/1.1')],
  [
    'a message with bad line ends',
    async (talk) => {
      for (const words of ['EHLO x', 'MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>', 'DATA'])
        await talk.ask(words)
      await talk.ask('a\nb\r\n.')
    },
  ],
  [
    'a chunk out of order',
    async (talk) => {
      await talk.ask('EHLO x')
      await talk.ask('BDAT 1 LAST\r\nx\r\n')
    },
  ],
]
for (const [name, misbehave] of misdeeds)
  test(`check 18: ${name} counts as one error of its address`, async (t) => {
    const mx = await startMx(t, { ...proxied, limits: { maxErrorsPerAddress: 3 } })
    for (let i = 0; i < 4; i++) {
      const talk = await connect(t, mx, '198.51.100.7')
      await misbehave(talk)
      talk.destroy()
    }
    const refused = await begin(t, mx, '198.51.100.7')
    assert.match((await refused.ask('MAIL FROM:<a@x.test>'))!, /^421 4\.7\.0/)
  })

test('check 18: errors of trusted peers and our own nodes do not count over sessions', async (t) => {
  const mx = await startMx(t, {
    isTrusted: (peer) => peer === '127.0.0.1' || peer === '198.51.100.9',
    isOwn: (name) => name === 'own.test',
    limits: { maxErrorsPerAddress: 5, messagesPerMinutePerAddress: 3, maxMessages: 3 },
  })
  for (const [address, ehlo] of [
    ['198.51.100.9', 'client.test'],
    ['198.51.100.7', 'own.test'],
  ] as const) {
    for (let i = 0; i < 2; i++) await err(await begin(t, mx, address, ehlo), 10)
    const talk = await begin(t, mx, address, ehlo)
    for (let i = 0; i < 10; i++) {
      assert.match((await talk.ask('MAIL FROM:<a@x.test>'))!, /^250/)
      await talk.ask('RSET')
    }
    assert.match((await talk.ask(`EHLO ${ehlo}`))!, /LIMITS RCPTMAX=3$/m)
  }
})

test('check 18: messages a minute are bounded by address', async (t) => {
  const mx = await startMx(t, { ...proxied, limits: { messagesPerMinutePerAddress: 5 } })
  const begun = async (talk: Talk) => {
    for (let count = 0; ; count++) {
      const answer = await talk.ask('MAIL FROM:<a@x.test>')
      if (!answer?.startsWith('250')) return { count, answer }
      await talk.ask('RSET')
    }
  }
  const one = await begun(await begin(t, mx, '198.51.100.7'))
  assert.deepEqual(one, { count: 5, answer: '421 4.7.0 Too many messages, try again later' })
  assert.equal((await begun(await begin(t, mx, '198.51.100.7'))).count, 0)
  assert.equal((await begun(await begin(t, mx, '198.51.100.8'))).count, 5)
  mx.clock.advance(60_000)
  assert.equal((await begun(await begin(t, mx, '198.51.100.7'))).count, 5)
})

test('the server keeps to its own MAILMAX and RCPTMAX', async (t) => {
  const mx = await startMx(t, { maxRecipients: 100, limits: { maxMessages: 4 } })
  const talk = await Talk.connect(t, mx.port)
  await talk.reply()
  assert.match((await talk.ask('EHLO client.test'))!, /^250-LIMITS RCPTMAX=100 MAILMAX=4$/m)
  // RFC 9422 also counts failed MAIL commands.
  assert.match((await talk.ask('MAIL FROM:<a@x.test> SIZE=100001'))!, /^552/)
  for (let message = 1; message < 4; message++) {
    assert.match((await talk.ask('MAIL FROM:<a@x.test>'))!, /^250/)
    for (let i = 0; i < 100; i++) talk.write(`RCPT TO:<u${i}@our.test>\r\n`)
    for (let i = 0; i < 100; i++) assert.match((await talk.reply())!, /^250/)
    assert.match((await talk.ask('RCPT TO:<u100@our.test>'))!, /^452 4\.5\.3/)
    await talk.ask('DATA')
    assert.match((await talk.ask('x\r\n.'))!, /^250/)
  }
  assert.match((await talk.ask('MAIL FROM:<a@x.test>'))!, /^421 4\.7\.0 Too many messages in one session/)
  assert.equal(mx.recorder.got.length, 3)
  assert.equal(await talk.line(), null)
})

function listing(answers: Record<string, Listing>, asked: string[] = []): Partial<SmtpServerOptions> {
  const none: Listing = { listedBy: [], refusedBy: null }
  return {
    ...proxied,
    listingOf: async (address) => {
      asked.push(address)
      return answers[address] ?? none
    },
  }
}

async function recipients(talk: Talk, ...names: string[]): Promise<string[]> {
  await talk.ask('MAIL FROM:<a@x.test>')
  const replies: string[] = []
  for (const name of names) replies.push((await talk.ask(`RCPT TO:<${name}@our.test>`))!)
  return replies
}

test('a listed peer is refused at RCPT with the list’s name, and can reach postmaster and abuse', async (t) => {
  const listed = { listedBy: ['told.test', 'list.test'], refusedBy: 'list.test' }
  const asked: string[] = []
  const mx = await startMx(t, listing({ '198.51.100.7': listed }, asked))
  const before = await refusals('listed')
  const talk = await begin(t, mx, '198.51.100.7')
  const replies = await recipients(talk, 'u', 'postmaster', 'v', 'Abuse', 'unknown')
  const refused = '550 5.7.1 Service unavailable, client host [198.51.100.7] blocked using list.test'
  assert.deepEqual(
    replies.map((reply) => (reply === refused ? 'refused' : reply.slice(0, 3))),
    ['refused', '250', 'refused', '250', 'refused'],
  )
  assert.equal(await refusals('listed'), before + 1)
  await talk.ask('DATA')
  assert.match((await talk.ask('x\r\n.'))!, /^250/)
  const { peer, to } = mx.recorder.got[0]!.envelope
  assert.deepEqual(
    [peer.listedBy, to.map(({ localPart }) => localPart)],
    [
      ['told.test', 'list.test'],
      ['postmaster', 'Abuse'],
    ],
  )
  // The server queries the lists once for the peer, and never for the balancer.
  assert.deepEqual(asked, ['198.51.100.7'])
})

test('the envelope of each message names the lists that only mark mail', async (t) => {
  const mx = await startMx(t, listing({ '198.51.100.7': { listedBy: ['told.test'], refusedBy: null } }))
  for (const [address, want] of [
    ['198.51.100.7', ['told.test']],
    ['198.51.100.8', []],
  ] as const) {
    const talk = await begin(t, mx, address)
    for (let i = 0; i < 2; i++) {
      assert.match((await recipients(talk, 'u'))[0]!, /^250/)
      await talk.ask('DATA')
      assert.match((await talk.ask('x\r\n.'))!, /^250/)
    }
    assert.deepEqual(
      mx.recorder.got.splice(0).map(({ envelope }) => envelope.peer.listedBy),
      [want, want],
    )
  }
})

test('trusted peers are not looked up in lists, and our own nodes are accepted whatever lists say', async (t) => {
  const listed = { listedBy: ['list.test'], refusedBy: 'list.test' }
  const asked: string[] = []
  const mx = await startMx(t, {
    ...listing({ '198.51.100.7': listed, '127.0.0.1': listed }, asked),
    isOwn: (name) => name === 'own.test',
  })
  assert.match((await recipients(await begin(t, mx, '198.51.100.7', 'own.test'), 'u'))[0]!, /^250/)
  const trusted = await Talk.connect(t, mx.port)
  await trusted.reply()
  await trusted.ask('EHLO x')
  assert.match((await recipients(trusted, 'u'))[0]!, /^250/)
  assert.deepEqual(asked, ['198.51.100.7'])
})

test('the first recipient waits for the lists, and a failing list refuses no one', async (t) => {
  const answer = Promise.withResolvers<Listing>()
  let asked = 0
  const mx = await startMx(t, {
    listingOf: () => {
      asked++
      return asked === 1 ? answer.promise : Promise.reject(new Error('bug'))
    },
  })
  const talk = await Talk.connect(t, mx.port)
  await talk.reply()
  assert.equal(asked, 1)
  await talk.ask('EHLO x')
  assert.match((await talk.ask('MAIL FROM:<a@x.test>'))!, /^250/)
  talk.write('RCPT TO:<u@our.test>\r\nNOOP\r\n')
  const reply = talk.reply()
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(mx.recorder.asked, [])
  answer.resolve({ listedBy: ['list.test'], refusedBy: 'list.test' })
  assert.match((await reply)!, /^550 5\.7\.1/)
  assert.match((await talk.reply())!, /^250/)
  const other = await Talk.connect(t, mx.port)
  await other.reply()
  await other.ask('EHLO x')
  assert.match((await recipients(other, 'u'))[0]!, /^250/)
  assert.equal(mx.errors.length, 1)
})

test('check 18: refusals are counted by reason', async (t) => {
  const reasons = { full: { maxConnections: 0 }, connections: { connectionsPerMinutePerAddress: 0 } }
  for (const [reason, limits] of Object.entries(reasons)) {
    const before = await refusals(reason)
    const mx = await startMx(t, { limits })
    assert.match((await (await Talk.connect(t, mx.port)).reply())!, /^421 4\.7\.0/)
    assert.equal(await refusals(reason), before + 1)
  }
  await sessionReason(t, 'session_errors', { maxErrors: 0 }, 'WHAT')
  await sessionReason(t, 'session_messages', { maxMessages: 0 }, 'MAIL FROM:<a@x.test>')
  await sessionReason(t, 'messages', { messagesPerMinutePerAddress: 0 }, 'MAIL FROM:<a@x.test>')
})

async function sessionReason(
  t: TestContext,
  reason: string,
  limits: SmtpServerOptions['limits'],
  words: string,
) {
  const before = await refusals(reason)
  const mx = await startMx(t, { ...(limits && { limits }) })
  const talk = await Talk.connect(t, mx.port)
  await talk.reply()
  await talk.ask('EHLO x')
  assert.match((await talk.ask(words))!, /^421 4\.7\.0/)
  assert.equal(await refusals(reason), before + 1)
}
