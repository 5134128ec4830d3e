// Reading in threads: the same answers as without, and no mail that stops another one or the service.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { attachmentContents, parseMail } from './parse.ts'
import { NoThread, ParsePool } from './parse-pool.ts'

function openPool(t: TestContext, timeoutMs = 10_000): ParsePool {
  const pool = new ParsePool({ threads: 1, timeoutMs })
  t.after(() => pool.close())
  return pool
}

const withAttachment = Buffer.from(
  'Subject: with attachment\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n' +
    '--b\r\n\r\ntext\r\n--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nUERG\r\n--b--\r\n',
)

/** Lines that are nearly boundaries: of all there is, this keeps the reader busy longest. */
const slowMail = Buffer.concat([
  Buffer.from('Content-Type: multipart/mixed; boundary=bb\r\n\r\n'),
  Buffer.from('--bx\r\n'.repeat(4_000_000)),
])

test('reads as without a thread, in order, and leaves the bytes to their owner', async (t) => {
  const pool = openPool(t)
  const mails = Array.from({ length: 50 }, (_, index) =>
    Buffer.from(`Subject: ${index}\r\n\r\nbody ${index}`),
  )
  const parsed = await Promise.all([...mails, withAttachment].map((raw) => pool.parse(raw)))
  assert.deepEqual(
    parsed,
    [...mails, withAttachment].map((raw) => parseMail(raw)),
  )
  assert.equal(mails[0]?.toString(), 'Subject: 0\r\n\r\nbody 0')
  assert.deepEqual(await pool.attachmentContents(withAttachment), attachmentContents(withAttachment))
  assert.deepEqual(attachmentContents(withAttachment)[0]?.bytes, Buffer.from('PDF'))
  assert.deepEqual(await pool.attachmentContents(mails[0]!), [])
})

test('check 97: a mail that takes too long comes as plain text, its neighbours unharmed', async (t) => {
  const pool = openPool(t, 100)
  const [first, slow, , , last] = await Promise.all([
    pool.parse(withAttachment),
    pool.parse(slowMail),
    assert.rejects(pool.attachmentContents(slowMail), /it took more than 100 ms/),
    assert.rejects(pool.report(slowMail), /it took more than 100 ms/),
    pool.parse(withAttachment),
  ])
  assert.match(slow.note ?? '', /could not be read: it took more than 100 ms/)
  assert.ok(slow.text.startsWith('--bx\n'))
  for (const neighbour of [first, last]) assert.deepEqual(neighbour, parseMail(withAttachment))
})

test('check 59: the event loop goes on while 25 MB of the worst are read', async (t) => {
  const pool = openPool(t)
  await pool.parse(withAttachment)
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const mail = await pool.parse(slowMail)
  delay.disable()
  assert.match(mail.note ?? '', /a text of more than 4 MiB/)
  t.diagnostic(`event loop delayed by ${Math.round(delay.max / 1e6)} ms at most`)
  assert.ok(delay.max / 1e6 < 200)
})

test('what cannot be handed to a thread rejects alone, long after it was asked for', async (t) => {
  const pool = openPool(t)
  // It waits behind more than are sent ahead, and is sent once an answer has come.
  const before = Array.from({ length: 10 }, () => pool.parse(withAttachment))
  const unsendable = pool.words([{ subject: () => {} } as never])
  const after = pool.parse(withAttachment)
  await assert.rejects(unsendable, NoThread)
  assert.equal((await Promise.all([...before, after])).length, 11)
})

test('closing rejects what is open, and what comes later: no mail is filed as text for it', async () => {
  const pool = new ParsePool({ threads: 2, timeoutMs: 10_000 })
  const open = assert.rejects(pool.parse(slowMail), /closed/)
  await pool.close()
  await open
  await assert.rejects(pool.parse(withAttachment), /closed/)
  await assert.rejects(pool.attachmentContents(withAttachment), /closed/)
})

/** Reads a mail that takes about half a second, in a process of its own; says when it begins, and what came of it. */
const reader = `
import { ParsePool } from ${JSON.stringify(new URL('./parse-pool.ts', import.meta.url).href)}
const pool = new ParsePool({ threads: 1, timeoutMs: 5_000 })
await pool.parse(Buffer.from('Subject: warm\\r\\n\\r\\n'))
const raw = Buffer.from('Content-Type: multipart/mixed; boundary=bb\\r\\n\\r\\n' + '--bx\\r\\n'.repeat(700_000))
const mail = pool.parse(raw)
console.log('begun')
console.log(JSON.stringify((await mail).note))
await pool.close()
`

test('check 93: a process that was stopped in the middle of a mail does not hold it against the mail', async (t) => {
  const child = spawn(process.execPath, ['--eval', reader])
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  assert.equal((await lines.next()).value, 'begun')
  child.kill('SIGSTOP')
  // Longer than a mail may take.
  await pause(5_500)
  child.kill('SIGCONT')
  assert.doesNotMatch((await lines.next()).value ?? 'nothing was said', /it took more than|nothing/)
  if (child.exitCode === null) await once(child, 'exit')
})
