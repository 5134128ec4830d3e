// The operator's mail at the command line: captured mail by its delivery's reply id, and mail to postmaster@ and abuse@.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { after, test } from 'node:test'
import type { Acceptance, Api } from '../support/api.ts'
import { ownProgram, run, runCommand } from '../support/command.ts'
import { createCaller, startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { until } from '../support/until.ts'

interface Entry {
  id: string
  from: string
  subject: string
  recipients: string[]
  isUnread: boolean
}

const posthorn = await startPosthorn({ after }, { env: { POSTHORN_DELIVERY: 'capture' } })
const attempt = (...words: string[]) => runCommand(words, posthorn.env, tmpdir())

/** Text that must not reach a terminal raw: a title change, a cleared screen, and the same with a one-byte introducer. */
const hostile = '\x1b]0;owned\x07\x1b[2J\u009b2J'

async function submit(api: Api, inboxId: string, subject: string): Promise<string> {
  const { submission } = await api.want<Acceptance>(`/v1/inboxes/${inboxId}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: `send-${subject}`,
    body: { to: [{ email: 'zoe@far.test' }], subject, text: `Hello ${subject}` },
  })
  const { response } = await until('the answer of the capture server', async () => {
    const [recipient] = (await api.want<Acceptance['submission']>(`/v1/submissions/${submission.id}`))
      .recipients
    return recipient!.status === 'delivered' ? recipient : null
  })
  return response!
}

async function receive(to: string, raw: Buffer): Promise<void> {
  const { outcome, reply } = await sendMail(posthorn.smtp, { from: 'zoe@far.test', to, raw })
  assert.equal(outcome, 'accepted', reply)
}

test('captured mail is listed, shown and downloaded, by the id of its answer', async () => {
  assert.deepEqual(await posthorn.cli(['captured', 'list']), { captured: [], nextCursor: null })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox('ada')
  const ids: string[] = []
  for (const subject of ['one', 'two', 'three'])
    ids.unshift(/captured as ([0-9a-f-]{36})$/.exec(await submit(api, inbox.id, subject))![1]!)

  const list = (...words: string[]) =>
    posthorn.cli<{ captured: Entry[]; nextCursor: string | null }>(['captured', 'list', ...words])
  const all = await list()
  assert.deepEqual(
    all.captured.map(({ id, subject, recipients }) => [id, subject, ...recipients]),
    ['three', 'two', 'one'].map((subject, at) => [ids[at], subject, 'zoe@far.test']),
  )
  assert.equal(all.nextCursor, null)
  const first = await list('--limit', '2')
  assert.deepEqual([first.captured.map(({ id }) => id), first.nextCursor], [ids.slice(0, 2), ids[1]])
  const rest = await list('--limit', '2', '--cursor', first.nextCursor!)
  assert.deepEqual([rest.captured.map(({ id }) => id), rest.nextCursor], [ids.slice(2), null])
  const { stdout } = await attempt('captured', 'list', '--limit', '2')
  assert.match(stdout, /^ID +BYTES +RECEIVED +TO +FROM +SUBJECT\n.*three\n.*two\n\nFor more: --cursor /)

  const text = (await attempt('captured', 'show', ids[1]!.toUpperCase())).stdout
  assert.match(
    text,
    /^from +.*ada@.*\nsubject +two\nenvelope +bounce-\S+ → zoe@far\.test\nreceived .*\nmessage-id +<\S+@\S+>\n\nHello two\n$/,
  )
  const source = (await attempt('captured', 'show', ids[1]!, '--source')).stdout
  assert.match(source, /^Subject: two\r$/m)
  assert.match(source, /^DKIM-Signature: /m)
  const wrapped = await posthorn.cli(['captured', 'show', ids[1]!, '--source'])
  assert.deepEqual(wrapped, { id: ids[1], encoding: 'utf8', source })

  for (const [words, status] of [
    [['show', '00000000-0000-7000-8000-000000000000'], 1],
    [['show', 'two'], 1],
    [['show', 'a b'], 2],
    [['list', '--limit', '1001'], 2],
  ] as const) {
    const refused = await attempt('captured', ...words)
    assert.equal(refused.status, status, words.join(' '))
    assert.match(refused.stderr, status === 1 ? /^posthorn: there is no mail [^\n]+\n$/ : /^error: /)
  }
})

test('mail for abuse@ and postmaster@ is unread until it is shown, and the doctor says so', async () => {
  const list = async (...words: string[]) =>
    (await posthorn.cli<{ mails: Entry[] }>(['mail', 'list', ...words])).mails
  const checkOf = async () => {
    const { checks } = await posthorn.cli<{ checks: Record<string, string | null>[] }>(['doctor'])
    return checks.find(({ name }) => name === 'operator mail')!
  }
  assert.equal((await checkOf())['status'], 'ok')
  for (const [to, subject] of [
    ['abuse@inbox.localhost', 'one'],
    ['postmaster@inbox.localhost', 'two'],
    ['Abuse+case7@inbox.localhost', 'three'],
  ] as const)
    await receive(to, Buffer.from(`From: Zoe <zoe@far.test>\r\nSubject: ${subject}\r\n\r\nStop it.\r\n`))
  const mails = await list()
  assert.deepEqual(
    mails.map(({ subject, isUnread }) => [subject, isUnread]),
    ['three', 'two', 'one'].map((subject) => [subject, true]),
  )
  assert.deepEqual(await checkOf(), {
    name: 'operator mail',
    status: 'warning',
    detail: '2 mails to abuse@ and 1 to postmaster@ are unread',
    mend: 'read it with posthorn mail list',
  })

  const text = (await attempt('mail', 'show', mails[0]!.id)).stdout
  assert.match(text, /^from +Zoe <zoe@far\.test>\nsubject +three\nenvelope +zoe@far\.test → Abuse\+case7@/)
  assert.match(text, /\n\nStop it\.\n$/)
  const source = await attempt('mail', 'show', mails[1]!.id, '--source')
  assert.match(source.stdout, /Subject: two\r\n\r\nStop it\.\r\n$/)
  const { stdout } = await attempt('mail', 'list')
  assert.match(stdout, /^ID +NEW +RECEIVED +TO +FROM +SUBJECT\n.*three\n.*two\n\S+ +new +.* one\n$/)
  assert.equal((await checkOf())['detail'], '1 mail to abuse@ is unread')
  assert.deepEqual(
    (await list('--unread')).map(({ subject }) => subject),
    ['one'],
  )
  await posthorn.cli(['mail', 'show', mails[2]!.id])
  assert.equal((await checkOf())['status'], 'ok')
})

test('terminal codes in a stranger’s mail are shown, and never executed', async () => {
  const lines = [
    `From: =?utf-8?b?${Buffer.from(`${hostile}\rharmless`).toString('base64')}?= <zoe@far.test>`,
    `Subject: ${hostile} \u202etxt.exe`,
    ...[
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: text/plain; charset=utf-8',
      '',
    ],
    ...['line', hostile, '--b', `Content-Disposition: attachment; filename*=utf-8''x%1b%5b2Jy.txt`, '', 'x'],
    ...['--b--', ''],
  ]
  await receive('abuse@inbox.localhost', Buffer.from(lines.join('\r\n')))
  const [mail] = (await posthorn.cli<{ mails: Entry[] }>(['mail', 'list'])).mails
  const obeyed = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]/
  for (const words of [['list'], ['list', '--json'], ['show', mail!.id], ['show', mail!.id, '--json']]) {
    const { status, stdout } = await attempt('mail', ...words)
    assert.equal(status, 0)
    assert.doesNotMatch(stdout, obeyed, words.join(' '))
    if (words.length === 2 && words[0] === 'show') assert.match(stdout, /^line\n␛\]0;owned␇␛\[2J\ufffd2J/m)
  }
  // Files and programs get the bytes. A terminal gets visible signs here too.
  const source = (await attempt('mail', 'show', mail!.id, '--source')).stdout
  assert.ok(source.includes('\x1b]0;owned\x07'))
  if (!existsSync('/usr/bin/script')) return
  const words = ['-qec', `${ownProgram} mail show ${mail!.id} --source`, '/dev/null']
  const seen = (await run('/usr/bin/script', words, posthorn.env, tmpdir())).stdout
  assert.match(seen, /␛\]0;owned␇/)
  // The terminal driver ends lines with CR LF by itself.
  assert.doesNotMatch(seen.replaceAll('\r\n', '\n'), obeyed)
})
