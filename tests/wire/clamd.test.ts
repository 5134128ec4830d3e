// Tests how the client handles clamd's answers, and missing answers.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Clamd, type ScanVerdict } from '../../src/scan/clamd.ts'
import { encryptedSample, nestedSample } from '../../src/scan/samples.ts'
import { clamdMissing, fakeClamd, makeClamd, type Script, streamed, virus } from '../support/clamd.ts'

/** Answers when the stream is complete. */
function answer(text: string): Script {
  return (socket, received) => {
    if (streamed(received)) socket.end(text, 'latin1')
  }
}

const reset: Script = (socket) => void socket.resetAndDestroy()
const silent: Script = () => {}

async function judge(t: TestContext, script: Script, options = {}, content = 'hello'): Promise<ScanVerdict> {
  const clamd = new Clamd(await fakeClamd(t, script, options), { answerMs: 200, connectMs: 2_000 })
  t.after(() => clamd.close())
  return await clamd.scan(() => [Buffer.from(content)])
}

const replies: [reply: string, state: ScanVerdict['state'], detail: RegExp][] = [
  ['stream: OK\0', 'clean', /^$/],
  ['stream: OK\n', 'clean', /^$/],
  ['stream: Win.Test.EICAR_HDB-1 FOUND\0', 'infected', /^Win\.Test\.EICAR_HDB-1$/],
  ['stream: Win.Test(44d88612fea8a8f36de82e1278abb02f:68) FOUND\0', 'infected', /^Win/],
  ['stream: Heuristics.Encrypted.Zip FOUND\0', 'failed', /Encrypted/],
  ['stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND\0', 'failed', /Limits/],
  ['stream: Heuristics.Phishing.Email FOUND\0', 'infected', /Phishing/],
  ['INSTREAM size limit exceeded. ERROR\0', 'failed', /size limit/],
  ["stream: Can't allocate memory ERROR\0", 'later', /allocate memory/],
  ['stream: OK FOUND\0', 'infected', /^OK$/],
  ['stream:  FOUND\0', 'later', /unexpected answer/],
  ['stream: OK, more or less\0', 'later', /unexpected answer/],
  ['UNKNOWN COMMAND\0', 'later', /unexpected answer/],
  ['\0', 'later', /unexpected answer/],
  ['HTTP/1.1 400 Bad Request\r\n\r\n', 'later', /unexpected answer/],
  ['stream: OK', 'failed', /closed/],
  ['', 'failed', /closed/],
  ['x'.repeat(100_000), 'later', /more than 4096 bytes/],
]

for (const [reply, state, detail] of replies)
  test(`check 64: ${JSON.stringify(reply.slice(0, 60))} is ${state}`, async (t) => {
    const verdict = await judge(t, answer(reply))
    assert.equal(verdict.state, state, verdict.detail)
    assert.match(verdict.detail, detail)
  })

test('check 64: an OK before the end of the stream does not count', async (t) => {
  const early: Script = (socket) => void socket.write('stream: OK\0')
  const clamd = new Clamd(await fakeClamd(t, early))
  // The rest of the content is held back until the verdict, however much the kernel buffers.
  const { promise: judged, resolve: release } = Promise.withResolvers<void>()
  const content = async function* () {
    yield Buffer.from('hello')
    await judged
  }
  const { state, detail } = await clamd.scan(content)
  release()
  assert.equal(state, 'later', detail)
  assert.match(detail, /unexpected answer: "stream: OK"/)
})

test('check 64: a silent but living clamd is asked later, and a dead one is lost', async (t) => {
  assert.equal((await judge(t, silent)).state, 'later')
  assert.equal((await judge(t, silent, { isDead: true })).state, 'lost')
})

test('check 64: a stream reset by a living clamd is failed, and by a dead one is lost', async (t) => {
  assert.equal((await judge(t, reset)).state, 'failed')
  assert.equal((await judge(t, reset, { isDead: true })).state, 'lost')
})

test('a stream that is reset once is sent again', async (t) => {
  let count = 0
  const once: Script = (socket, received) =>
    count++ === 0 ? socket.resetAndDestroy() : answer('stream: OK\0')(socket, received)
  assert.equal((await judge(t, once)).state, 'clean')
})

test('an absent clamd is unreachable, and so is every scan after the end', async (t) => {
  const clamd = new Clamd({ path: '/nonexistent/clamd' })
  assert.equal((await clamd.scan(() => [Buffer.from('x')])).state, 'unreachable')
  await assert.rejects(clamd.version(), /ENOENT/)
  const slow = new Clamd(await fakeClamd(t, silent))
  const open = slow.scan(() => [Buffer.from('x')])
  slow.close()
  assert.equal((await open).state, 'unreachable')
  assert.equal((await slow.scan(() => [Buffer.from('x')])).state, 'unreachable')
})

test('the stream arrives unchanged', async (t) => {
  const content = Buffer.alloc(300_000, 'posthorn')
  let seen: Buffer | null = null
  const script: Script = (socket, received) => {
    seen = streamed(received)
    if (seen) socket.end('stream: OK\0')
  }
  const clamd = new Clamd(await fakeClamd(t, script))
  assert.equal((await clamd.scan(() => [content])).state, 'clean')
  assert.deepEqual(seen, content)
})

test('check 64: a real clamd judges each kind of content', { skip: clamdMissing }, async (t) => {
  const real = makeClamd(t)
  await real.start()
  const clamd = new Clamd({ path: real.path })
  const cases: [what: string, content: Buffer, state: ScanVerdict['state']][] = [
    ['an empty file', Buffer.alloc(0), 'clean'],
    ['text', Buffer.from('hello'), 'clean'],
    ['text with the signature', Buffer.from(`a ${virus} b`), 'infected'],
    ['an encrypted archive', encryptedSample, 'failed'],
    ['archives within each other', nestedSample, 'failed'],
    ['a file at the limit', Buffer.alloc(1 << 20, 'x'), 'clean'],
    ['a file over the limit', Buffer.alloc((1 << 20) + 1, 'x'), 'failed'],
    ['a file far over the limit', Buffer.alloc(20 << 20, 'x'), 'failed'],
  ]
  for (const [what, content, state] of cases)
    await t.test(`${what} is ${state}`, async () => {
      const verdict = await clamd.scan(() => [content])
      assert.equal(verdict.state, state, verdict.detail)
    })
  assert.match(await clamd.version(), /^ClamAV \d/)
})
