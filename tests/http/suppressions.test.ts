// Tests suppressions and complaints over the API: permissions, answers and paging.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newUuid, type OrganizationId, type SubmissionId } from '../../src/base/ids.ts'
import { insertComplaint } from '../../src/store/sending/complaints.ts'
import { enterAs } from './app/visitor.ts'
import { ask, type Caller, setStage } from './stage.ts'

const stage = await setStage({ after })
const path = '/v1/suppressions'

function change({ secret }: { secret: string }, method: 'POST' | 'DELETE', body: unknown) {
  const headers = { 'content-type': 'application/json' }
  return ask(stage, method, path, { secret, headers, body: JSON.stringify(body) })
}

test('an address is suppressed, shown and released, in any spelling', async () => {
  const caller = await stage.createCaller()
  const added = await change(caller, 'POST', { email: 'Some.One@BÜCHER.example' })
  assert.equal(added.status, 201)
  const { createdAt, ...rest } = added.body
  assert.match(String(createdAt), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
  assert.deepEqual(rest, { email: 'Some.One@xn--bcher-kva.example', reason: 'manual', submissionId: null })
  stage.clock.advance(5_000)
  const again = await change(caller, 'POST', { email: 'some.one@bücher.EXAMPLE' })
  assert.deepEqual([again.status, again.body], [201, added.body])
  assert.deepEqual(await caller.api.want(path), { suppressions: [added.body], nextCursor: null })
  const stranger = await stage.createCaller()
  assert.deepEqual(await stranger.api.want(path), { suppressions: [], nextCursor: null })
  const foreign = await change(stranger, 'DELETE', { email: 'some.one@bücher.example' })
  assert.deepEqual([foreign.status, foreign.body.error], [404, 'not_found'])
  const removed = await change(caller, 'DELETE', { email: 'SOME.ONE@xn--bcher-kva.example' })
  assert.deepEqual([removed.status, removed.body], [204, {}])
  assert.equal((await change(caller, 'DELETE', { email: 'some.one@bücher.example' })).status, 404)
  assert.deepEqual(await caller.api.want(path), { suppressions: [], nextCursor: null })
})

test('the list filters by one address, in any spelling, and never shows another organization’s', async () => {
  const caller = await stage.createCaller()
  const stranger = await stage.createCaller()
  for (const email of ['first@far.test', 'Jürgen@BÜCHER.example', 'last@far.test'])
    await change(caller, 'POST', { email })
  await change(stranger, 'POST', { email: 'other@far.test' })
  type Page = { suppressions: { email: string; reason: string }[]; nextCursor: string | null }
  const find = async ({ api }: Pick<Caller, 'api'>, email: string, query = '') => {
    const page = await api.want<Page>(`${path}?email=${encodeURIComponent(email)}${query}`)
    assert.equal(page.nextCursor, null)
    return page.suppressions.map((one) => one.email)
  }
  for (const email of ['Jürgen@bücher.example', 'jürgen@xn--bcher-kva.EXAMPLE', 'JÜRGEN@Bücher.example'])
    assert.deepEqual(await find(caller, email, '&limit=1'), ['Jürgen@xn--bcher-kva.example'])
  for (const email of ['other@far.test', 'nobody@far.test', 'irst@far.test', '%@far.test'])
    assert.deepEqual(await find(caller, email), [], email)
  assert.deepEqual(await find(stranger, 'first@far.test'), [])
  // The cursor of the whole list continues after the rows it has shown.
  const { nextCursor } = await caller.api.want<Page>(`${path}?limit=2`)
  assert.deepEqual(await find(caller, 'last@far.test', `&cursor=${nextCursor}`), [])
  assert.deepEqual(await find(caller, 'first@far.test', `&cursor=${nextCursor}`), ['first@far.test'])
  const confined = await caller.createKey({ inboxIds: [(await caller.api.createInbox()).id as never] })
  assert.equal((await confined.api.call(`${path}?email=first@far.test`)).status, 403)
  for (const query of ['?email=', '?email=first', '?email=a@far.test&email=b@far.test', '?emails=a@far.test'])
    assert.equal((await caller.api.call(path + query)).status, 400, query)
})

test('an import keeps a former service’s reason, note and time, and the API shows the same fields', async () => {
  const caller = await stage.createCaller()
  const owner = await enterAs(stage, caller)
  const add = async (body: Record<string, unknown>, status = 201) => {
    const given = { reason: 'manual', note: null, createdAt: null, ...body }
    return await owner.want<Record<string, string>>('/suppressions/import', {
      method: 'POST',
      body: given,
      status,
    })
  }
  const from = stage.clock.now().toISOString()
  const note = '😀'.repeat(200)
  const rows = [
    { email: 'a@far.test', reason: 'hard_bounce', note: null, createdAt: '2020-02-29T12:00:00.123Z' },
    { email: 'b@far.test', reason: 'complaint', note: null, createdAt: '2021-01-01T00:00:00.000Z' },
    { email: 'c@far.test', reason: 'manual', note, createdAt: '2019-01-01T00:00:00.000Z' },
  ]
  for (const row of rows)
    assert.deepEqual(await add({ ...row, createdAt: row.createdAt.replace('Z', '+00:00') }), {
      ...row,
      submissionId: null,
    })
  for (const [name, time] of [
    ['null', null],
    ['2999', '2999-01-01T00:00:00Z'],
    ['1969', '1969-12-31T23:59:59Z'],
  ]) {
    const email = `${name}@far.test`
    const { createdAt = '', ...rest } = await add({ email, createdAt: time })
    assert.deepEqual(rest, { email, reason: 'manual', note: null, submissionId: null })
    assert.ok(createdAt >= from && createdAt <= stage.clock.now().toISOString(), `${name}: ${createdAt}`)
  }
  const again = await add({ email: 'A@far.test', reason: 'complaint', note: 'other', createdAt: null })
  assert.deepEqual(again, { ...rows[0], submissionId: null })
  type Page = { suppressions: { email: string; note?: string | null }[]; nextCursor: string | null }
  const seen: Page['suppressions'] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Page = await owner.want(`/suppressions/noted?limit=2${cursor && `&cursor=${cursor}`}`)
    seen.push(...page.suppressions)
    cursor = page.nextCursor
  }
  const emails = ['1969@far.test', '2999@far.test', 'null@far.test', 'b@far.test', 'a@far.test', 'c@far.test']
  assert.deepEqual([seen.map(({ email }) => email), seen.at(-1)?.note], [emails, note])
  const found = await owner.want<Page>('/suppressions/noted?email=C@far.test')
  assert.deepEqual(found, { suppressions: [seen.at(-1)], nextCursor: null })
  const listed = await caller.api.want<Page>(path)
  assert.deepEqual(
    listed.suppressions,
    seen.map(({ note: _, ...rest }) => rest),
  )
  const stranger = await enterAs(stage, await stage.createCaller())
  assert.deepEqual(await stranger.want('/suppressions/noted'), { suppressions: [], nextCursor: null })
  for (const body of [
    ...[{ email: 'no' }, { reason: 'spam' }, { note: '' }, { note: 'x'.repeat(201) }, { note: 'a\nb' }],
    ...[{ note: 'a\0b' }, { createdAt: 'soon' }, { createdAt: '2026-02-30T00:00:00Z' }, { since: null }],
  ])
    assert.equal((await add({ email: 'd@far.test', ...body }, 400))['error'], 'invalid_request')
})

test('check 73: invalid addresses, long addresses and extra fields are refused', async () => {
  const caller = await stage.createCaller()
  const bodies: unknown[] = [
    ...[{}, [], null, { email: 1 }, { email: '' }, { email: 'nobody' }, { email: 'a@b c' }],
    ...[{ email: 'a@far.test', reason: 'manual' }, { email: `${'a'.repeat(312)}@far.test` }],
  ]
  for (const body of bodies) {
    for (const method of ['POST', 'DELETE'] as const) {
      const answer = await change(caller, method, body)
      assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request'], JSON.stringify(body))
    }
  }
  assert.equal((await ask(stage, 'DELETE', path, { secret: caller.secret })).status, 400)
  for (const query of ['?limit=0', '?limit=101', '?before=x', '?cursor=x'])
    assert.equal((await caller.api.call(path + query)).status, 400)
})

test('check 69: a key needs the scope, and a key restricted to inboxes has no access', async () => {
  const caller = await stage.createCaller()
  const inbox = await caller.api.createInbox()
  const reader = await caller.createKey({ scopes: ['delivery:read'] })
  const sender = await caller.createKey({ scopes: ['delivery:send'] })
  const confined = await caller.createKey({ scopes: ['*'], inboxIds: [inbox.id as never] })
  const codes = async (key: Pick<Caller, 'secret' | 'api'>) => {
    const answers = [
      await change(key, 'POST', { email: 'a@far.test' }),
      await key.api.call(path),
      await key.api.call('/v1/complaints'),
      await change(key, 'DELETE', { email: 'a@far.test' }),
    ]
    return answers.map(({ status, body }) => (status < 300 ? status : (body as { error: string }).error))
  }
  const refused = 'insufficient_scope'
  assert.deepEqual(await codes(reader), [refused, 200, 200, refused])
  assert.deepEqual(await codes(sender), [201, refused, refused, 204])
  await change(caller, 'POST', { email: 'a@far.test' })
  assert.deepEqual(await codes(confined), Array(4).fill('inbox_not_allowed'))
})

test('check 76: lists are newest first, page by page, and a cursor is valid for its own list alone', async () => {
  const caller = await stage.createCaller()
  const emails = Array.from({ length: 7 }, (_, index) => `a${index}@far.test`)
  for (const email of emails) await change(caller, 'POST', { email })
  type Page = { suppressions: { email: string }[]; nextCursor: string | null }
  const seen: string[] = []
  let page = await caller.api.want<Page>(`${path}?limit=3`)
  const { nextCursor } = page
  for (;;) {
    seen.push(...page.suppressions.map(({ email }) => email))
    if (page.nextCursor === null) break
    // Rows added or removed meanwhile do not shift the others.
    if (seen.length === 3) {
      await change(caller, 'POST', { email: 'late@far.test' })
      await change(caller, 'DELETE', { email: 'a4@far.test' })
    }
    page = await caller.api.want<Page>(`${path}?limit=3&cursor=${page.nextCursor}`)
  }
  assert.deepEqual(seen, emails.toReversed())
  const stranger = await stage.createCaller()
  for (const [api, list] of [
    [stranger.api, path],
    [caller.api, '/v1/complaints'],
  ] as const) {
    const { status, body } = await api.call(`${list}?cursor=${nextCursor}`)
    assert.deepEqual([status, body.error], [400, 'invalid_cursor'])
  }
})

test('complaints are listed newest first, and the same one appears once', async () => {
  const { api, organizationId } = await stage.createCaller()
  const complaint = (email: string) => ({
    organizationId: organizationId as OrganizationId,
    submissionId: newUuid<SubmissionId>(),
    messageId: null,
    email,
    addressKey: email,
    feedbackType: 'abuse',
    userAgent: null,
    reportedBy: 'mx.far.test',
    arrivedAt: new Date('2026-11-21T09:00:00Z'),
  })
  const at = new Date('2026-11-21T10:00:00Z')
  const rows = ['a@far.test', 'b@far.test', 'c@far.test'].map(complaint)
  const insert = (row: (typeof rows)[0]) => stage.db.transaction((tx) => insertComplaint(tx, row, at))
  for (const row of rows) assert.equal(await insert(row), true)
  assert.equal(await insert(rows[0]!), false)
  type Page = { complaints: Record<string, unknown>[]; nextCursor: string | null }
  const first = await api.want<Page>('/v1/complaints?limit=2')
  const rest = await api.want<Page>(`/v1/complaints?limit=2&cursor=${first.nextCursor}`)
  const all = [...first.complaints, ...rest.complaints]
  assert.deepEqual(
    all.map(({ email }) => email),
    ['c@far.test', 'b@far.test', 'a@far.test'],
  )
  const { id, ...shown } = all[0]!
  assert.match(String(id), /^[0-9a-f-]{36}$/)
  assert.deepEqual(shown, {
    email: 'c@far.test',
    submissionId: rows[2]!.submissionId,
    messageId: null,
    feedbackType: 'abuse',
    userAgent: null,
    reportedBy: 'mx.far.test',
    arrivedAt: '2026-11-21T09:00:00.000Z',
    createdAt: '2026-11-21T10:00:00.000Z',
  })
})
