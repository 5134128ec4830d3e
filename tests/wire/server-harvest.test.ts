// Address harvesters meet the real server: guessing gets slow, then fails, and harms no other peer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Scope, until } from '../support/until.ts'
import { type Mx, startMx } from './mx.ts'
import { Talk } from './talk.ts'

const proxied = { isTrusted: (peer: string) => peer === '127.0.0.1', maxRecipients: 100 }

/** Opens a session of the peer and begins an envelope. Returns null if the server refuses it earlier. */
async function begin(t: Scope, { port }: Mx, address: string, ehlo = 'client.test'): Promise<Talk | null> {
  const talk = await Talk.connect(t, port)
  talk.write(`PROXY TCP4 ${address} 192.0.2.25 4000 25\r\n`)
  const replies = [await talk.reply(), await talk.ask(`EHLO ${ehlo}`), await talk.ask('MAIL FROM:<a@x.test>')]
  if (replies.every((reply) => reply?.startsWith('2'))) return talk
  assert.match(replies.join(' '), /421 4\.7\.0/)
  return null
}

/** Queries the names over many connections at once, several in each. Returns how many names were revealed. */
async function harvest(t: Scope, mx: Mx, address: string, names: string[], lines = 40): Promise<number> {
  let learned = 0
  const left = names.values()
  const guess = async () => {
    let talk: Talk | null = null
    for (let asked = 0; ; asked++) {
      const { value: name } = left.next()
      if (name === undefined) return talk?.destroy()
      if (asked % 10 === 0) {
        talk?.destroy()
        talk = await begin(t, mx, address)
      }
      const reply: string | null = talk && (await talk.ask(`RCPT TO:<${name}@our.test>`))
      if (!reply || reply.startsWith('421')) return talk?.destroy()
      learned++
    }
  }
  await Promise.all(Array.from({ length: lines }, guess))
  return learned
}

test('check 26: a peer that tries a thousand names learns few, and others are unaffected', async (t) => {
  const mx = await startMx(t, proxied)
  const names = Array.from({ length: 1_000 }, (_, i) => `unknown${i}`)
  const startMs = performance.now()
  const learned = await harvest(t, mx, '198.51.100.7', names)
  assert.ok(learned >= 49 && learned <= 51, `${learned} names`)
  assert.ok(performance.now() - startMs > 2_000, 'its answers came late')
  // The server reveals nothing more to the peer about any name, on any connection.
  assert.equal(await begin(t, mx, '198.51.100.7'), null)
  for (const address of ['198.51.100.8', '203.0.113.5']) {
    const talk = (await begin(t, mx, address))!
    const askedMs = performance.now()
    assert.match((await talk.ask('RCPT TO:<unknown@our.test>'))!, /^550 5\.1\.1/)
    assert.match((await talk.ask('RCPT TO:<u@our.test>'))!, /^250/)
    assert.ok(performance.now() - askedMs < 1_000)
  }
  mx.clock.advance(601_000)
  assert.ok(await begin(t, mx, '198.51.100.7'))
})

test('check 26: a network’s addresses count together, except our nodes and trusted peers', async (t) => {
  const isOwn = (name: string) => name === 'own.test'
  const mx = await startMx(t, { ...proxied, isOwn })
  const names = Array.from({ length: 45 }, (_, i) => `unknown${i}`)
  const hosts = [1, 2, 3, 4, 5, 6].map((host) => harvest(t, mx, `198.51.100.${host}`, names, 45))
  const learned = (await Promise.all(hosts)).reduce((sum, count) => sum + count)
  assert.ok(learned >= 199 && learned <= 201, `${learned} names`)
  await until('them to have gone', () => mx.server.sessions === 0)
  assert.equal(await begin(t, mx, '198.51.100.99'), null)
  assert.ok(await begin(t, mx, '198.51.101.1'))
  // The message does not reveal the name that identifies our nodes.
  const own = await Talk.connect(t, mx.port)
  own.write('PROXY TCP4 198.51.100.99 192.0.2.25 4000 25\r\n')
  assert.match((await own.reply())!, /^220/)
  for (const words of ['EHLO own.test', 'MAIL FROM:<a@x.test>', 'RCPT TO:<u@our.test>', 'DATA'])
    await own.ask(words)
  assert.match((await own.ask('x\r\n.'))!, /^250/)
  assert.equal(mx.recorder.got[0]!.envelope.peer.helo, 'mx.test')
})

test('check 26: a sender of accepted mail may also make as many errors', async (t) => {
  const mx = await startMx(t, proxied)
  for (let round = 0; round < 80; round++) {
    const talk = (await begin(t, mx, '198.51.100.7'))!
    assert.match((await talk.ask(`RCPT TO:<unknown${round}@our.test>`))!, /^550/)
    for (const words of ['RCPT TO:<u@our.test>', 'DATA']) await talk.ask(words)
    assert.match((await talk.ask('x\r\n.'))!, /^250/)
    talk.destroy()
  }
})
