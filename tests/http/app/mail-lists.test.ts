// Tests the dashboard's mail lists: inboxes by their newest mail, and conversations and searches of one inbox or of all.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { setStage } from '../stage.ts'
import { enterDirectly } from './visitor.ts'

interface Row {
  threadId: string
  messageId: string
  address: string
  subject: string
  direction: string
  from: { email: string; name?: string }
  snippet: string
  hasFiles: boolean
  messageCount: number
}

test('mail is listed and found over all inboxes, the newest first, page by page, and only by its owner', async (t) => {
  const stage = await setStage(t)
  const { organizationId, api } = await stage.createCaller()
  const [first, second, empty] = [await api.createInbox(), await api.createInbox(), await api.createInbox()]
  const enter = async (id: string) => {
    const visitor = await enterDirectly(stage, id)
    return async <Body>(path: string) => (await visitor.call<Body>(`/mail/${path}`)).body
  }
  const ask = await enter(organizationId)
  const list = async (path: string) => (await ask<{ rows: Row[] }>(path)).rows
  const subjects = async (path: string) => (await list(path)).map(({ subject }) => subject)
  const receive = (to: string, subject: string, rest: string) =>
    stage.receive(to, `From: Ada <ada@far.test>\nTo: ${to}\nSubject: ${subject}\n${rest}`)
  await receive(second.address, 'One', `Message-ID: <1@far.test>\n\nThe  first\nrefund.\n`)
  await receive(first.address, 'Two', '\nThe second refund.\n')
  const file = 'Content-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\nA file.\n'
  await receive(second.address, 'Three', `${file}`)
  await receive(second.address, 'Re: One', 'In-Reply-To: <1@far.test>\n\nStill no answer.\n')

  const inboxes = await ask<{ inboxes: { inbox: { id: string }; lastMessageAt: string | null }[] }>('inboxes')
  assert.deepEqual(
    inboxes.inboxes.map(({ inbox, lastMessageAt }) => [inbox.id, lastMessageAt === null]),
    [
      [second.id, false],
      [first.id, false],
      [empty.id, true],
    ],
  )
  assert.deepEqual(await subjects('threads'), ['One', 'Three', 'Two'])
  assert.deepEqual(await subjects(`threads?inboxId=${first.id}`), ['Two'])
  const [newest, withFile] = await list('threads')
  const { address, from, direction, snippet, hasFiles, messageCount } = newest!
  assert.deepEqual([address, direction, hasFiles, messageCount], [second.address, 'inbound', false, 2])
  assert.deepEqual([from, snippet], [{ email: 'ada@far.test', name: 'Ada' }, 'Still no answer.'])
  assert.equal(withFile!.hasFiles, true)

  const found = await until('the words to be indexed', async () => {
    const rows = await list('messages?q=refund')
    return rows.length === 2 ? rows : null
  })
  assert.deepEqual(
    found.map(({ subject, snippet }) => [subject, snippet]),
    [
      ['Two', 'The second refund.'],
      ['One', 'The first refund.'],
    ],
  )
  assert.deepEqual(await subjects(`messages?q=refund&inboxId=${first.id}`), ['Two'])
  assert.deepEqual(await subjects('messages?from=ada@far.test'), ['Re: One', 'Three', 'Two', 'One'])

  for (const path of ['inboxes?', 'threads?', 'messages?direction=inbound&', 'messages?q=refund&']) {
    const ids = (body: Record<string, unknown>) =>
      ((body['inboxes'] ?? body['rows']) as { inbox?: { id: string }; messageId?: string }[]).map(
        (row) => row.inbox?.id ?? row.messageId,
      )
    const whole = ids(await ask(path.slice(0, -1)))
    const paged: unknown[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: Record<string, unknown> = await ask(`${path}limit=1${cursor && `&cursor=${cursor}`}`)
      paged.push(...ids(page))
      cursor = page['nextCursor'] as string | null
    }
    assert.deepEqual(paged, whole, path)
  }

  const strange = await enter((await stage.createCaller()).organizationId)
  assert.deepEqual((await strange<{ rows: Row[] }>('threads')).rows, [])
  assert.deepEqual((await strange<{ rows: Row[] }>('messages?q=refund')).rows, [])
  assert.equal((await strange<{ error: string }>(`threads?inboxId=${first.id}`)).error, 'not_found')
})

test('a stranger’s long names, subjects and lists of recipients make no long row', async (t) => {
  const stage = await setStage(t)
  const { organizationId, api } = await stage.createCaller()
  const inbox = await api.createInbox()
  const visitor = await enterDirectly(stage, organizationId)
  const name = 'x'.repeat(700)
  const others = Array.from({ length: 500 }, (_, n) => `"${'y'.repeat(300)}" <to${n}@far.test>`)
  const fields = [
    `From: "${name}" <ada@far.test>`,
    `To: ${[inbox.address, ...others].join(',\n ')}`,
    `Subject: ${'refund '.repeat(200)}`,
  ]
  await stage.receive(inbox.address, `${fields.join('\n')}\n\nText.\n`)
  const readRows = async (path: string) => {
    const { body } = await visitor.call<{ rows: (Row & { to: { name?: string }[] })[]; indexing?: boolean }>(
      `/mail/${path}`,
    )
    return body
  }
  await until('the words to be indexed', async () => {
    const { rows, indexing } = await readRows('messages?q=refund')
    return rows.length === 1 && indexing === false
  })
  for (const path of ['threads', 'messages?q=refund']) {
    const [row] = (await readRows(path)).rows
    assert.deepEqual([row!.from.name?.length, row!.to.length, row!.to[1]!.name?.length], [200, 5, 200], path)
    assert.ok(row!.subject.length <= 500, path)
  }
})
