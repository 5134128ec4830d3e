// Tests attachment downloads: permission, scan state, file name and headers.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { silentLog } from '../../src/base/log.ts'
import { meters } from '../../src/base/meters.ts'
import { Scanner } from '../../src/flow/receiving/scan.ts'
import { Clamd, type ClamdAddress } from '../../src/scan/clamd.ts'
import type { Message } from '../support/api.ts'
import { fakeClamd, streamed } from '../support/clamd.ts'
import { until } from '../support/until.ts'
import { ask, type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })
/** A scanner that finds VIRUS infected, fails on LIMITS and asks for a retry on WAIT. */
const address = await fakeClamd({ after }, (socket, received) => {
  const content = streamed(received)?.toString('latin1')
  if (content === undefined) return
  if (content.includes('VIRUS')) socket.end('stream: Some.Virus FOUND\0')
  else if (content.includes('LIMITS')) socket.end('INSTREAM size limit exceeded. ERROR\0')
  else socket.end(content.includes('WAIT') ? 'try again ERROR\0' : 'stream: OK\0')
})
const { db, clock, blobs } = stage
const newScanner = (clamd: ClamdAddress) =>
  new Scanner({ db, clock, blobs, log: silentLog, clamd: new Clamd(clamd), claims: stage.claims('scan') })
const scanner = newScanner(address)

interface Received {
  caller: Caller
  message: Message
  paths: string[]
}

/**
 * Receives a message whose attachments have the given `Content-Disposition` parameters, and scans them as far as
 * possible.
 */
async function receive(files: [parameters: string, content: string][]): Promise<Received> {
  const caller = await stage.createCaller()
  const inbox = await caller.api.createInbox()
  const parts = files.map(
    ([parameters, content]) =>
      `--b\nContent-Type: text/html\nContent-Disposition: attachment; ${parameters}\n\n${content}\n`,
  )
  const head = 'From: a@far.test\nContent-Type: multipart/mixed; boundary=b\n\n'
  await stage.receive(inbox.address, `${head}--b\n\nText\n${parts.join('')}--b--\n`)
  const [filed] = await caller.api.exported(inbox.id)
  while (await scanner.scanNext());
  const message = await caller.api.want<Message>(`/v1/messages/${filed!.id}`)
  const paths = message.attachments!.map(({ id }) => `/v1/messages/${message.id}/attachments/${id}`)
  return { caller, message, paths }
}

test('check 63: a clean attachment comes with exactly the headers of the specification', async () => {
  const { caller, paths } = await receive([
    ["filename*=UTF-8''f%C3%BCr%20dich.html", '<script>alert(1)</script>'],
  ])
  const response = await fetch(stage.base + paths[0], { headers: { 'x-api-key': caller.secret } })
  assert.equal(response.status, 200)
  const own = ['ratelimit', 'ratelimit-policy', 'x-request-id']
  const transport = ['connection', 'date', 'keep-alive']
  const headers = [...response.headers].filter(([name]) => ![...own, ...transport].includes(name))
  assert.deepEqual(Object.fromEntries(headers), {
    'cache-control': 'private, no-store',
    'content-disposition': `attachment; filename="f_r dich.html"; filename*=UTF-8''f%C3%BCr%20dich.html`,
    'content-length': '25',
    'content-security-policy': "default-src 'none'; sandbox",
    'content-type': 'application/octet-stream',
    'x-content-type-options': 'nosniff',
  })
  assert.equal(await response.text(), '<script>alert(1)</script>')
})

const names: [what: string, parameters: string, shown: RegExp][] = [
  ['climbs', 'filename="../../../etc/passwd"', /"passwd"/],
  ['climbs on Windows', 'filename="..\\\\..\\\\boot.ini"', /"boot.ini"/],
  ['turns the text around', "filename*=UTF-8''annual%E2%80%AEfdp.exe", /"annualfdp.exe"/],
  ['has a NUL', "filename*=UTF-8''a%00b.txt", /"a b.txt"/],
  ['breaks the line', "filename*=UTF-8''a%0D%0ASet-Cookie:%20x=1.txt", /"a Set-Cookie_ x=1.txt"/],
  ['has quotes', 'filename="a\\"; filename=\\"b.exe"', /"a_; filename=_b.exe"/],
  ['is endless', `filename="${'x'.repeat(4096)}.pdf"`, /"x{190,200}"/],
  ['comes in pieces', "filename*0*=UTF-8''on%65; filename*1=.txt", /"one.txt"/],
  ['is missing', 'size=1', /"attachment-1.html"/],
]

for (const [what, parameters, shown] of names)
  test(`check 63: a name that ${what} is harmless in the header`, async () => {
    const { caller, paths } = await receive([[parameters, 'x']])
    const response = await fetch(stage.base + paths[0], { headers: { 'x-api-key': caller.secret } })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('set-cookie'), null)
    const disposition = response.headers.get('content-disposition')!
    assert.match(disposition, shown)
    assert.match(disposition, /^attachment; filename="[\x20-\x7e]{1,200}"; filename\*=UTF-8''[!-~]{1,600}$/)
    assert.equal(await response.text(), 'x')
  })

test('a uuencoded file is scanned and returned decoded', async () => {
  const encoded = 'begin 644 a.txt\n#86)C\n`\nend'
  const { caller, message, paths } = await receive([
    ['filename=a.txt\nContent-Transfer-Encoding: x-uuencode', encoded],
  ])
  assert.equal(message.attachments![0]!.size, 3)
  const response = await fetch(stage.base + paths[0], { headers: { 'x-api-key': caller.secret } })
  assert.equal(response.headers.get('content-length'), '3')
  assert.equal(await response.text(), 'abc')
})

test('check 64: only clean attachments are returned, and none over the deployment’s limit', async (t) => {
  const files: [string, string, number, string | undefined][] = [
    ['clean.txt', 'harmless', 200, undefined],
    ['virus.txt', 'VIRUS', 409, 'attachment_not_clean'],
    ['limits.txt', 'LIMITS', 409, 'attachment_not_clean'],
    ['wait.txt', 'WAIT', 423, 'attachment_not_scanned'],
    ['as-large.txt', 'x'.repeat(300_000), 200, undefined],
    ['larger.txt', 'x'.repeat(300_001), 413, 'attachment_too_large'],
    ['larger-waits.txt', `WAIT${'x'.repeat(300_000)}`, 413, 'attachment_too_large'],
  ]
  const { caller, paths, message } = await receive(
    files.map(([name, content]) => [`filename=${name}`, content]),
  )
  for (const [index, [name, , status, error]] of files.entries())
    await t.test(`${name} is ${status}`, async () => {
      const answer = await fetch(stage.base + paths[index], { headers: { 'x-api-key': caller.secret } })
      assert.equal(answer.status, status)
      const body = await answer.text()
      if (status === 200) assert.equal(body, files[index]![1])
      else assert.equal(JSON.parse(body).error, error)
    })
  assert.equal(message.inboundSecurity?.attachments, 'infected')

  // A failed scan of one attachment is retried later. The verdicts on the others remain.
  const waiting = await db.query<{ failures: number; dueAt: Date }>(
    'select failures, due_at as "dueAt" from scan where message_id = $1',
    [message.id],
  )
  assert.equal(waiting[0]?.failures, 1)
  const waitMs = waiting[0].dueAt.getTime() - clock.nowMs()
  assert.ok(waitMs > 30_000 && waitMs < 70_000)
  clock.advance(70_000)
  assert.equal(await scanner.scanNext(), true)
  const [again] = await db.query<{ failures: number }>('select failures from scan where message_id = $1', [
    message.id,
  ])
  assert.equal(again?.failures, 2)
})

test('a download waits for the verdict, and 423 says when to try again', async () => {
  const caller = await stage.createCaller()
  const inbox = await caller.api.createInbox()
  const head = 'From: a@far.test\nContent-Type: multipart/mixed; boundary=b\n\n'
  const file = '--b\nContent-Disposition: attachment; filename=a.txt\n\n'
  await stage.receive(inbox.address, `${head}${file}harmless\n${file}WAIT\n--b--\n`)
  const [filed] = await caller.api.exported(inbox.id)
  const [clean, undecided] = filed!.attachments!.map(
    ({ id }) => `${stage.base}/v1/messages/${filed!.id}/attachments/${id}`,
  )
  const headers = { 'x-api-key': caller.secret }
  const refused = await fetch(clean!, { headers })
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [423, '2'])
  const waiting = fetch(`${clean}?wait=60`, { headers })
  const other = fetch(`${undecided}?wait=1`, { headers })
  await until('both to wait', async () => (await meters.waiting.get()).values[0]?.value === 2)
  while (await scanner.scanNext());
  const answer = await waiting
  assert.deepEqual([answer.status, await answer.text()], [200, 'harmless'])
  assert.equal((await other).status, 423, 'no verdict within its time')
  for (const wait of ['61', '-1', 'x'])
    assert.equal((await fetch(`${clean}?wait=${wait}`, { headers })).status, 400, wait)
})

test('check 97: an attachment that kills clamd each time does not keep clamd from the others', async () => {
  const life = { isDead: false }
  const clamd = await fakeClamd(
    { after },
    (socket, received) => {
      const content = streamed(received)?.toString('latin1')
      if (content === undefined && !life.isDead) return
      life.isDead ||= content!.includes('KILLS')
      if (life.isDead) socket.resetAndDestroy()
      else socket.end('stream: OK\0')
    },
    life,
  )
  const caller = await stage.createCaller()
  const inbox = await caller.api.createInbox()
  const mail = (content: string) =>
    `From: a@far.test\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Disposition: attachment\n\n${content}\n--b--\n`
  for (const content of ['KILLS', 'harmless']) await stage.receive(inbox.address, mail(content))
  const own = newScanner(clamd)
  const states = async () =>
    (await caller.api.exported(inbox.id)).map(({ attachments }) => attachments![0]!.scanState)
  for (let restart = 0; restart < 3; restart++) {
    life.isDead = false
    while (await own.scanNext());
    clock.advance(20_000)
  }
  assert.deepEqual(await states(), ['unscanned', 'clean'])
  own.close()
})

test('check 68: an attachment of another message, organization or inbox is not found', async (t) => {
  const [mine, theirs] = [await receive([['filename=a', 'a']]), await receive([['filename=b', 'b']])]
  const hex = mine.message.id.slice(4)
  const at = (attachment: string, message = mine.message.id) =>
    `/v1/messages/${message}/attachments/${attachment}`
  const none = '0'.repeat(24)
  const elsewhere = await mine.caller.api.createInbox()
  const restricted = await mine.caller.createKey({ inboxIds: [elsewhere.id as never] })
  const cases: [what: string, path: string, status: number, error: string, secret?: string][] = [
    ['a number past the last', at(`att_${hex}_2`), 404, 'not_found'],
    ['an attachment of another message', at(theirs.message.attachments![0]!.id), 404, 'not_found'],
    ['a message of another organization', theirs.paths[0]!, 404, 'not_found'],
    ['a message that is none', at(`att_${none}_1`, `msg_${none}`), 404, 'not_found'],
    ['a key of another inbox', mine.paths[0]!, 403, 'inbox_not_allowed', restricted.secret],
    ['the number 0', at(`att_${hex}_0`), 400, 'invalid_request'],
    ['the number 1000', at(`att_${hex}_1000`), 400, 'invalid_request'],
    ['a path', at('..%2f..%2fetc%2fpasswd'), 400, 'invalid_request'],
    ['an unknown parameter', `${mine.paths[0]}?x=1`, 400, 'invalid_request'],
  ]
  for (const [what, path, status, error, secret = mine.caller.secret] of cases)
    await t.test(`${what} is ${status} ${error}`, async () => {
      const answer = await ask(stage, 'GET', path, { secret })
      assert.deepEqual([answer.status, answer.body.error], [status, error])
    })
})

test('check 64: bytes other than the scanned ones are not returned', async () => {
  const { caller, paths, message } = await receive([['filename=a.txt', 'harmless']])
  await db.query(
    `update raw set bytes = substring(bytes for 100) where id = (select raw_id from message where id = $1)`,
    [message.id],
  )
  const response = await fetch(stage.base + paths[0], { headers: { 'x-api-key': caller.secret } }).catch(
    () => null,
  )
  await assert.rejects(async () => {
    if (response?.status !== 200) throw new Error('refused')
    await response.text()
  })
})

test('a message lists its first 999 attachments, and its source has all', async () => {
  const { caller, message, paths } = await receive(
    Array.from({ length: 1_002 }, (_, i) => [`filename=${i + 1}.txt`, `file ${i + 1}`]),
  )
  assert.equal(paths.length, 999)
  assert.match(paths.at(-1)!, /_999$/)
  assert.equal((await caller.api.bytes(paths.at(-1)!)).toString(), 'file 999')
  const beyond = await ask(stage, 'GET', paths.at(-1)!.replace(/999$/, '1000'), { secret: caller.secret })
  assert.deepEqual([beyond.status, beyond.body.error], [400, 'invalid_request'])
  const source = (await caller.api.bytes(`/v1/messages/${message.id}/source`)).toString()
  assert.match(source, /filename=1002\.txt\r\n\r\nfile 1002\r\n/)
})

test('an empty attachment is 200 with a content-length of 0', async () => {
  const { caller, paths } = await receive([['filename=empty.txt', '']])
  const response = await fetch(stage.base + paths[0], { headers: { 'x-api-key': caller.secret } })
  assert.deepEqual([response.status, response.headers.get('content-length')], [200, '0'])
  assert.equal(await response.text(), '')
})

test('HEAD of a download answers as GET does, without the bytes', async () => {
  const { caller, message, paths } = await receive([['filename=a.txt', 'a']])
  for (const path of [paths[0], `/v1/messages/${message.id}/source`]) {
    const ask = (method: string) =>
      fetch(stage.base + path, { method, headers: { 'x-api-key': caller.secret } })
    const [head, get] = [await ask('HEAD'), await ask('GET')]
    assert.equal((await head.arrayBuffer()).byteLength, 0)
    assert.notEqual((await get.arrayBuffer()).byteLength, 0)
    const names = ['content-type', 'content-length', 'content-disposition']
    for (const name of names) assert.equal(head.headers.get(name), get.headers.get(name), name)
    assert.equal(head.status, get.status)
  }
})

test('check 77: a message deleted while it streams arrives whole, and its bytes are deleted', async () => {
  const caller = await stage.createCaller()
  const inbox = await caller.api.createInbox()
  const line = 'A line of seventy characters, again and again, until the sockets are full\n'
  await stage.receive(inbox.address, `Subject: Large\n\n${line.repeat(400_000)}`)
  const [message] = await caller.api.exported(inbox.id)
  const path = `/v1/messages/${message!.id}`
  const whole = await caller.api.bytes(`${path}/source`)
  const [raw] = await db.query<{ id: string }>('select raw_id as id from message where id = $1', [
    message!.id,
  ])
  const response = await fetch(`${stage.base}${path}/source`, { headers: { 'x-api-key': caller.secret } })
  const reader = response.body!.getReader()
  const pieces = [(await reader.read()).value!]
  await caller.api.want(path, { method: 'DELETE', status: 204 })
  assert.deepEqual(await db.query('select from raw where id = $1', [raw!.id]), [])
  assert.equal(await blobs.has(raw!.id), false)
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    pieces.push(value)
  }
  assert.ok(Buffer.concat(pieces).equals(whole))
  assert.equal((await caller.api.call(`${path}/source`)).status, 404)
})
