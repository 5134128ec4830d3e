// Tests reading in threads: the same answers as without, and no mail that stops another mail or the service.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { NoThread } from '../base/thread-pool.ts'
import { NoBytes, ParsePool, ParseTimedOut, viewAsText } from './parse-pool.ts'
import type { MailBytes, ReadMail } from './parse-worker.ts'
import { ChangedFile } from './read/file-bytes.ts'
import { parseMail } from './read/parse.ts'
import { withoutMargins } from './read/quote.ts'

function openPool(t: TestContext, timeoutMs = 60_000): ParsePool {
  const pool = new ParsePool({ threads: 1, timeoutMs })
  t.after(() => pool.close())
  return pool
}

const withAttachment = Buffer.from(
  'Subject: with attachment\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n' +
    '--b\r\n\r\ntext\r\n--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\nUERG\r\n--b--\r\n',
)

/** Lines that are nearly boundaries. No other mail keeps the reader busy longer. */
const slowMail = Buffer.concat([
  Buffer.from('Content-Type: multipart/mixed; boundary=bb\r\n\r\n'),
  Buffer.from('--bx\r\n'.repeat(4_000_000)),
])

/** Restores long texts to strings, and the new text if it equals the text. */
function asParsed(mail: ReadMail) {
  const [text = '', html] = [mail.text, mail.html].map((one) => one && Buffer.from(one).toString())
  return { ...mail, text, html, extractedText: mail.extractedText ?? withoutMargins(text ?? '') }
}

test('the pool reads mail as the main thread does, in order, and leaves the bytes to their owner', async (t) => {
  const pool = openPool(t)
  const mails = Array.from({ length: 50 }, (_, index) =>
    Buffer.from(`Subject: ${index}\r\n\r\nbody ${index}`),
  )
  const long = 'ä few words\r\n'.repeat(2_000)
  const reply = Buffer.from(`Subject: long\r\n\r\n${long}On 1 Jul 2003, Jane wrote:\r\n> old\r\n`)
  const all = [...mails, withAttachment, reply, Buffer.from(`Content-Type: text/html\r\n\r\n${long}`)]
  const parsed = await Promise.all(all.map((raw) => pool.parse(raw)))
  assert.deepEqual(
    parsed.map(asParsed),
    all.map((raw) => parseMail(raw)),
  )
  const [short, answer, page] = [parsed[0]!, parsed.at(-2)!, parsed.at(-1)!]
  assert.equal(short.extractedText, null)
  assert.equal(answer.extractedText, long.replaceAll('\r', '').trim())
  assert.ok(page.text instanceof Uint8Array && page.html instanceof Uint8Array)
  assert.equal(mails[0]?.toString(), 'Subject: 0\r\n\r\nbody 0')
})

test('the pool reads files like memory, and a missing file is not the mail’s fault', async (t) => {
  const pool = openPool(t)
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-parse-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'mail')
  writeFileSync(path, withAttachment)
  assert.deepEqual(
    asParsed(await pool.parse({ path, sizeBytes: withAttachment.length })),
    parseMail(withAttachment),
  )
  assert.equal(await pool.report({ path, sizeBytes: withAttachment.length }), null)
  const missing = { path: join(folder, 'none'), sizeBytes: 1 }
  const changed = { path, sizeBytes: withAttachment.length + 1 }
  for (const read of [
    pool.parse.bind(pool),
    pool.report.bind(pool),
    (raw: MailBytes) => viewAsText(raw, ''),
  ]) {
    const noBytes = (error: unknown) => error instanceof NoBytes && error.code === 'ENOENT'
    await assert.rejects(read(missing), noBytes)
    await assert.rejects(read(changed), ChangedFile)
  }
  // Part of the slow mail, more than a hundred windows of its file.
  const part = slowMail.subarray(0, 8 << 20)
  writeFileSync(path, part)
  assert.ok(isDeepStrictEqual(asParsed(await pool.parse({ path, sizeBytes: part.length })), parseMail(part)))
})

test('check 97: a file that takes too long is shown as text, from its start alone', async (t) => {
  const pool = openPool(t, 100)
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-parse-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'mail')
  writeFileSync(path, slowMail)
  const mail = await pool.parse({ path, sizeBytes: slowMail.length })
  assert.match(mail.note ?? '', /could not be read: it took more than 100 ms/)
  assert.ok(String(mail.text).startsWith('--bx\n'))
})

test('check 97: a mail that takes too long is read as plain text, and its neighbours normally', async (t) => {
  const pool = openPool(t, 500)
  const [first, slow, , last] = await Promise.all([
    pool.parse(withAttachment),
    pool.parse(slowMail),
    assert.rejects(pool.report(slowMail), /it took more than 500 ms/),
    pool.parse(withAttachment),
  ])
  assert.match(slow.note ?? '', /could not be read: it took more than 500 ms/)
  assert.ok(String(slow.text).startsWith('--bx\n'))
  for (const neighbour of [first, last]) assert.deepEqual(asParsed(neighbour), parseMail(withAttachment))
})

test('hostile 17: an impatient caller gets no text, and the thread goes on with other mail', async (t) => {
  const pool = openPool(t)
  await pool.parse(withAttachment)
  let isWanted = true
  const timeLimit = { timeoutMs: 100, isWanted: () => isWanted }
  const startMs = performance.now()
  const slow = Array.from({ length: 6 }, () => pool.parse(slowMail.subarray(0, 8_000_000), timeLimit))
  const plain = pool.parse(withAttachment, { timeoutMs: 5_000, isWanted: () => true })
  slow[0]!.catch(() => (isWanted = false))
  for (const mail of slow) await assert.rejects(mail, ParseTimedOut)
  t.diagnostic(`all were given up after ${Math.round(performance.now() - startMs)} ms`)
  assert.deepEqual(asParsed(await plain), parseMail(withAttachment))
})

test('hostile 2, 17: files obey the same patience, report address and text bounds as memory', async (t) => {
  const pool = openPool(t)
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-parse-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const inFile = (raw: Buffer) => {
    const path = join(folder, String(raw.length))
    writeFileSync(path, raw)
    return { path, sizeBytes: raw.length }
  }
  await pool.parse(inFile(withAttachment))
  const timeLimit = { timeoutMs: 100, isWanted: () => true }
  await assert.rejects(pool.parse(inFile(slowMail), timeLimit), ParseTimedOut)
  const notWanted = pool.parse(inFile(withAttachment), { timeoutMs: 5_000, isWanted: () => false })
  await assert.rejects(notWanted, ParseTimedOut)
  const forwarded = Buffer.from(`Subject: Fwd\r\n\r\nReturn-Path: <bounce-${'a'.repeat(48)}@us.test>\r\n`)
  assert.equal((await pool.report(inFile(forwarded), 'feedback'))?.kind, 'feedback')
  assert.equal(await pool.report(inFile(forwarded), 'return_path'), null)
  // `empty` decodes to nothing, however much is read. `grown` becomes longer when it is decoded.
  const empty = `Content-Transfer-Encoding: quoted-printable\r\n\r\n${'=\r\n'.repeat(5 << 20)}`
  const grown = `Content-Type: text/plain; charset=windows-1252\r\n\r\n${'\x80'.repeat(3 << 20)}`
  for (const raw of [empty, grown].map((text) => Buffer.from(text, 'latin1'))) {
    const mail = await pool.parse(inFile(raw))
    assert.ok(Buffer.byteLength(mail.text) <= 4 << 20)
    assert.match(mail.note ?? '', /a text of more than 4 MiB/)
    assert.ok(isDeepStrictEqual(asParsed(mail), parseMail(raw)))
  }
})

test('check 59: the event loop stays responsive while 25 MB of the worst mail are read', async (t) => {
  const pool = openPool(t)
  await pool.parse(withAttachment)
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  const startedMs = performance.now()
  const mail = await pool.parse(slowMail)
  const tookMs = performance.now() - startedMs
  delay.disable()
  assert.match(mail.note ?? '', /a text of more than 4 MiB/)
  // A loop that read the mail itself would be delayed by all of that time.
  const words = `${Math.round(delay.max / 1e6)} ms at most, while ${Math.round(tookMs)} ms were read`
  t.diagnostic(`event loop delayed by ${words}`)
  assert.ok(delay.max / 1e6 < tookMs / 4, words)
})

test('a mail that cannot be sent to the thread rejects by itself, long after the call', async (t) => {
  const pool = openPool(t)
  // It is queued after more requests than are sent ahead, so it is sent only after an answer.
  const before = Array.from({ length: 10 }, () => pool.parse(withAttachment))
  const unsendable = pool.words([{ subject: () => {} } as never])
  const after = pool.parse(withAttachment)
  await assert.rejects(unsendable, NoThread)
  assert.equal((await Promise.all([...before, after])).length, 11)
})

test('closing rejects open and later calls, so no mail is filed as text', async () => {
  const pool = new ParsePool({ threads: 2, timeoutMs: 10_000 })
  const open = assert.rejects(pool.parse(slowMail), /closed/)
  await pool.close()
  await open
  await assert.rejects(pool.parse(withAttachment), /closed/)
})

/** A separate process that reads a mail for about 250 ms, and prints when it begins and the note that results. */
const reader = `
import { ParsePool } from ${JSON.stringify(new URL('./parse-pool.ts', import.meta.url).href)}
const pool = new ParsePool({ threads: 1, timeoutMs: 5_000 })
await pool.parse(Buffer.from('Subject: warm\\r\\n\\r\\n'))
const raw = Buffer.from('Content-Type: multipart/mixed; boundary=bb\\r\\n\\r\\n' + '--bx\\r\\n'.repeat(350_000))
const mail = pool.parse(raw)
console.log('begun')
console.log(JSON.stringify((await mail).note))
await pool.close()
`

test('check 93: a process killed within a mail does not count against the mail', async (t) => {
  const child = spawn(process.execPath, ['--eval', reader])
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  assert.equal((await lines.next()).value, 'begun')
  child.kill('SIGSTOP')
  // Longer than the time limit of a mail.
  await pause(5_500)
  child.kill('SIGCONT')
  assert.doesNotMatch((await lines.next()).value ?? 'nothing was said', /it took more than|nothing/)
  if (child.exitCode === null) await once(child, 'exit')
})
