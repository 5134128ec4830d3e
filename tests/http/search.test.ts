// Searches messages in any language, by phrase and prefix, without crossing organizations. Also on PostgreSQL 15.
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { after, before, describe, test } from 'node:test'
import type { InboxId } from '../../src/base/ids.ts'
import { makeSearchable } from '../../src/flow/searching/make-searchable.ts'
import { ParsePool } from '../../src/mail/parse-pool.ts'
import type { Api, Inbox, Message } from '../support/api.ts'
import { indexAll } from '../support/indexed.ts'
import { fillSearched } from '../support/searched-mail.ts'
import { until } from '../support/until.ts'
import { Visitor } from './app/visitor.ts'
import { setStage } from './stage.ts'

const stage = await setStage({ after })
const parsePool = new ParsePool({ threads: 1, timeoutMs: 10_000 })
after(() => parsePool.close())

async function index(): Promise<void> {
  const log = { ...console } as never
  const [cursor, olderCursor] = [{ last: null }, { last: null }]
  const deps = { db: stage.db, log, parsePool, cursor, olderCursor }
  await indexAll(stage.db, () => makeSearchable(deps))
}

interface Page {
  messages: Message[]
  nextCursor: string | null
}

async function search(api: Api, inbox: Inbox, q: string, more = ''): Promise<string[]> {
  const path = `/v1/inboxes/${inbox.id}/messages?q=${encodeURIComponent(q)}${more}`
  const ask = async () => {
    const { status, body, headers } = await api.call<Page>(path)
    assert.equal(status, 200)
    return { found: body.messages.map(({ subject }) => subject), complete: headers.get('search-complete') }
  }
  const first = await ask()
  if (first.complete === '?1') return first.found
  // A busy machine may need more than 1 s to index everything.
  await index()
  const second = await ask()
  assert.equal(second.complete, '?1')
  return second.found
}

let sent = 0

async function send(api: Api, inbox: Inbox, body: Record<string, unknown>): Promise<Message> {
  const { message } = await api.want<{ message: Message }>(`/v1/inboxes/${inbox.id}/messages`, {
    method: 'POST',
    status: 202,
    idempotencyKey: `search-${sent++}`,
    body: { to: [{ email: 'someone@near.test' }], text: 'x', ...body },
  })
  return message
}

describe('search: words are found in every language', async () => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox()
  const texts: [subject: string, text: string, found: string[], notFound: string[]][] = [
    [
      'German',
      'Schöne Grüße aus der Straße in Köln!',
      ['grusse', 'GRÜSSE', 'STRASSE', 'Koln', 'strass*', '"aus der strasse"'],
      ['gruss', '"strasse der"'],
    ],
    ['Russian', 'Ёлка стоит в Москве', ['елка', 'МОСКВЕ', 'москв*'], ['москва']],
    ['Greek', 'Ο Οδυσσέας γύρισε στην Ιθάκη', ['οδυσσεασ', 'ΟΔΥΣΣΕΑΣ', 'Ιθακη'], ['ιθακ']],
    ['Arabic', 'السَّلامُ عليكم يا أحمد', ['السلام', 'احمد', '"عليكم يا"'], ['سلاما']],
    ['Hebrew', 'שָׁלוֹם לכולם', ['שלום', 'לכולם'], ['שלו']],
    ['Hindi', 'नमस्ते दुनिया, हिन्दी में', ['हिन्दी', 'दुनिया'], ['हन्दी']],
    [
      'Japanese',
      '明日の東京タワーの天気は晴れです。ｶﾞｲﾄﾞ',
      ['東京', '京タワ', '東京タワーの天気', '晴', '晴れです', 'ガイド', '明日 晴れ'],
      ['京都', '東タワー', '天東京'],
    ],
    ['Chinese', '我们明天在上海见面', ['上海', '明天在上海', '面', '上海见面'], ['海上', '在明天']],
    ['Thai', 'สวัสดีครับ ยินดีที่ได้รู้จัก', ['สวัสดี', 'ครับ', 'ยินดี', 'รู้จัก'], ['จักรู้']],
    ['Korean', '내일 서울에서 만나요', ['서울', '서울에서', '만나', '"내일 서울"'], ['울서']],
    ['Vietnamese', 'Xin chào Việt Nam', ['viet nam', 'chào'], ['vietnam']],
    ['Turkish', 'İstanbul’da görüşürüz', ['istanbul', 'ISTANBUL', 'gorusuruz'], ['stanbul']],
    ['Khmer', 'សួស្តីពិភពលោក', ['ពិភពលោក', 'ពិភព'], ['លោកពិភព']],
    ['Emoji 🎉', '👩‍👩‍👧 party 🎉🎉 time 1️⃣', ['party', '"party time"', 'emoji', '1'], ['partytime']],
  ]
  before(async () => {
    for (const [subject, text] of texts) await send(api, inbox, { subject, text })
    await index()
  })
  for (const [subject, , found, notFound] of texts)
    test(subject, async () => {
      for (const q of found) assert.deepEqual(await search(api, inbox, q), [subject], q)
      for (const q of notFound) assert.deepEqual(await search(api, inbox, q), [], q)
    })
})

describe('search: filters narrow the searched fields', async () => {
  const { api, createKey } = await stage.createCaller()
  const inbox = await api.createInbox()
  const [other, stranger] = [await api.createInbox(), await stage.createCaller()]
  const foreign = await stranger.api.createInbox()
  before(async () => {
    const content = Buffer.from('bytes').toString('base64')
    await send(api, inbox, {
      subject: 'Invoice 4711',
      text: 'The due date is near; total 1.234,56 EUR (see https://pay.example/a?b=c).',
      to: [{ email: 'anna.schmidt@far.test', name: 'Anna Schmidt' }],
      cc: [{ email: 'carl@cc.test' }],
      bcc: [{ email: 'hidden@bcc.test' }],
      attachments: [{ filename: 'Rechnung-März.pdf', contentType: 'application/pdf', content }],
    })
    await send(api, inbox, {
      subject: 'Page',
      html: '<p>Only <b>marked</b>up</p><script>evil()</script>',
      text: undefined,
    })
    await stage.receive(
      inbox.address,
      'From: Bob Far <bob@far.test>\nSubject: Re: Invoice\n\nPaid the due amount.\n',
    )
    for (const [by, where] of [
      [api, other],
      [stranger.api, foreign],
    ] as const)
      await send(by, where, { subject: 'Elsewhere', text: 'Invoice due anna.schmidt@far.test secret' })
    await index()
  })
  const both = ['Re: Invoice', 'Invoice 4711']
  const cases: [q: string, found: string[], more?: string][] = [
    ['invoice', both],
    ['due invoice', both],
    ['"due date"', ['Invoice 4711']],
    ['“due date”', ['Invoice 4711']],
    ['"date due"', []],
    ['invoice amount', ['Re: Invoice']],
    ['anna.schmidt@far.test', ['Invoice 4711']],
    ['anna', ['Invoice 4711']],
    ['far.test', both],
    ['test.far', []],
    ['Schmidt', ['Invoice 4711']],
    ['bob@far.test', ['Re: Invoice']],
    ['carl@cc.test', ['Invoice 4711']],
    ['hidden@bcc.test', []],
    ['rechnung-marz.pdf', ['Invoice 4711']],
    ['marz', ['Invoice 4711']],
    ['1.234,56', ['Invoice 4711']],
    ['https://pay.example/a?b=c', ['Invoice 4711']],
    ['invoi*', both],
    ['invoi', []],
    ['"due dat*"', ['Invoice 4711']],
    ['*voice', []],
    ['"only marked', []],
    ['"only markedup', ['Page']],
    ['evil', []],
    ['secret', []],
    ['invoice', ['Re: Invoice'], '&direction=inbound'],
    ['invoice', ['Re: Invoice'], '&from=BOB@far.test'],
    ['invoice', [], '&until=2020-01-01T00:00:00Z'],
    ['invoice', both, '&since=2020-01-01T00:00:00Z'],
    ["'; drop table message --", []],
    ['invoice & !due | $x <-> (', []],
    ['a:*', ['Invoice 4711']],
  ]
  for (const [q, found, more] of cases)
    test(`${q}${more ?? ''}`, async () => assert.deepEqual(await search(api, inbox, q, more), found))

  test('a query without a word, or one that is too long, is 400', async () => {
    for (const q of ['', ' ', '🎉', '*', '""', '. - @', '\u3164', 'a\0', 'a\nb', 'x'.repeat(201)]) {
      const answer = await api.call(`/v1/inboxes/${inbox.id}/messages?q=${encodeURIComponent(q)}`)
      assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request'], JSON.stringify(q))
      assert.match(answer.body.message, /^\/q /)
    }
    assert.equal((await api.call(`/v1/inboxes/${inbox.id}/messages?q=a&q=b`)).status, 400)
  })

  test('check 68: words in another inbox or organization are not found', async () => {
    assert.deepEqual(await search(api, other, 'secret'), ['Elsewhere'])
    assert.equal((await api.call(`/v1/inboxes/${foreign.id}/messages?q=secret`)).status, 404)
    const { api: restricted } = await createKey({ inboxIds: [inbox.id as InboxId] })
    assert.equal((await restricted.call(`/v1/inboxes/${other.id}/messages?q=secret`)).status, 403)
  })
})

test('search: pages keep the list’s order, and lose no message', async () => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox()
  for (let n = 0; n < 25; n++)
    await send(api, inbox, { subject: `N${n}`, text: n % 5 === 4 ? 'other' : 'wanted' })
  assert.equal((await search(api, inbox, 'wanted')).length, 20)
  const wanted = Array.from({ length: 25 }, (_, n) => n)
    .filter((n) => n % 5 !== 4)
    .reverse()
  const seen: string[] = []
  let cursor = ''
  do {
    const path = `/v1/inboxes/${inbox.id}/messages?q=wanted&limit=7${cursor}`
    const page = await api.want<Page>(path)
    seen.push(...page.messages.map(({ subject }) => subject))
    cursor = page.nextCursor ? `&cursor=${page.nextCursor}` : ''
  } while (cursor)
  assert.deepEqual(
    seen,
    wanted.map((n) => `N${n}`),
  )
  const none = await api.want<Page>(`/v1/inboxes/${inbox.id}/messages?q=unheard-of`)
  assert.deepEqual(none, { messages: [], nextCursor: null })
})

test('search: a new message is found once it is indexed, and a deleted one no more', async () => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox()
  const message = await send(api, inbox, { subject: 'Late' })
  const doomed = await send(api, inbox, { subject: 'Late too' })
  await api.want(`/v1/messages/${doomed.id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual(await search(api, inbox, 'late'), ['Late'])
  const later = await send(api, inbox, { subject: 'Late three' })
  const path = `/v1/inboxes/${inbox.id}/messages?q=three`
  assert.deepEqual((await api.want<Page>(path)).messages, [])
  await index()
  assert.deepEqual(await search(api, inbox, 'three'), [later.subject])
  await api.want(`/v1/messages/${later.id}`, { method: 'DELETE', status: 204 })
  await api.want(`/v1/messages/${message.id}`, { method: 'DELETE', status: 204 })
  assert.deepEqual(await search(api, inbox, 'late'), [])
  assert.deepEqual(await stage.db.query('select from message_search where inbox_id = $1', [inbox.id]), [])
})

test('search: the answer says whether it is complete, and a read-only key also starts an index', async () => {
  const { api, createKey } = await stage.createCaller()
  const inbox = await api.createInbox()
  await send(api, inbox, { subject: 'Here' })
  const { api: reader } = await createKey({ scopes: ['mailbox:read'], inboxIds: [inbox.id as InboxId] })
  const path = `/v1/inboxes/${inbox.id}/messages`
  assert.equal((await reader.call(path)).headers.get('search-complete'), null)
  assert.deepEqual(await stage.db.query('select from searched_inbox where inbox_id = $1', [inbox.id]), [])
  assert.match((await reader.call(`${path}?q=here`)).headers.get('search-complete')!, /^\?[01]$/)
  await index()
  const { body, headers } = await reader.call<Page>(`${path}?q=here`)
  assert.deepEqual([body.messages.length, headers.get('search-complete')], [1, '?1'])
})

test('search: with a filter it ends after 5,000 matches, says so, and its cursor continues', async () => {
  const { api } = await stage.createCaller()
  const inbox = await api.createInbox()
  await fillSearched(stage.db, inbox.id, { count: 12_000, sent: 3 })
  const ask = async (query: string, cursor: string | null) => {
    const more = cursor === null ? '' : `&cursor=${cursor}`
    const path = `/v1/inboxes/${inbox.id}/messages?${query}${more}`
    const { status, body, headers } = await api.call<Page>(path)
    assert.equal(status, 200)
    return { ...body, complete: headers.get('search-complete') }
  }
  for (const filter of ['direction=outbound', 'from=nobody@far.test']) {
    const pages = [await ask(`q=alpha&${filter}`, null)]
    for (
      let cursor = pages[0]!.nextCursor;
      cursor !== null && pages.length < 5;
      cursor = pages.at(-1)!.nextCursor
    )
      pages.push(await ask(`q=alpha&${filter}`, cursor))
    const found = filter.startsWith('direction') ? 3 : 0
    assert.deepEqual(
      pages.map(({ messages, complete }) => [messages.length, complete]),
      [
        [0, '?0'],
        [0, '?0'],
        [found, '?1'],
      ],
      filter,
    )
  }
  const inbound = await ask('q=alpha&direction=inbound&limit=2', null)
  assert.deepEqual([inbound.messages.length, inbound.complete], [2, '?1'])
  assert.equal((await ask('q=w1x*', null)).complete, '?1')
})

describe('slow reads of one organization are bounded', async () => {
  const { api, secret } = await stage.createCaller()
  const inbox = await api.createInbox()
  const { api: neighbour } = await stage.createCaller()
  const { person } = await new Visitor(stage).signUp('neighbour@far.test')
  const slowSearch = `/v1/inboxes/${inbox.id}/messages?q=slow`
  const ask = (signal: AbortSignal | null = null, path = slowSearch) =>
    fetch(`${stage.base}${path}`, { headers: { 'x-api-key': secret }, signal })
  const signature = 'search_messages(text, text, text, text, text, text, integer, integer)'
  let definition = ''

  before(async () => {
    const text = await stage.db.query<{ text: string }>(
      'select pg_get_functiondef($1::regprocedure) as text',
      [signature],
    )
    definition = text[0]!.text
    // The query takes a minute on any machine, and uses no CPU.
    await stage.db.query(`create or replace function search_messages(inbox text, query text, only_direction text,
      only_sender text, since text, until text, wanted integer, most integer)
      returns table (message_id text, is_found boolean) language plpgsql volatile as
      'begin perform pg_sleep(60); end'`)
  })
  after(() => stage.db.query(definition))

  const countSlow = async () => {
    const rows = await stage.db.query(
      `select from pg_stat_activity where datname = current_database() and state = 'active'
        and wait_event in ('PgSleep', 'relation')`,
    )
    return rows.length
  }

  test('hostile 23: a read that takes 5 s is answered 503, and its statement ends', async () => {
    const answer = await ask()
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5'])
    assert.match(await answer.text(), /"unavailable".*more than 5 s/)
    assert.equal(await countSlow(), 0)
  })

  test('hostile 23: a client that leaves ends the statement of its read', async () => {
    const leaving = new AbortController()
    const asked = ask(leaving.signal).catch(() => null)
    await until('the read to be under way', async () => (await countSlow()) === 1)
    leaving.abort()
    const fromMs = performance.now()
    await until('its statement to end', async () => (await countSlow()) === 0)
    await asked
    // Its timeout would end it only after 5 s.
    assert.ok(performance.now() - fromMs < 3_500)
  })

  /**
   * Sends 40 requests at once, of which `expected` run. Meanwhile another organization sends, receives, reads and signs
   * in.
   */
  const crowd = async (path: string, expected: number) => {
    const their = await neighbour.createInbox()
    const leaving = new AbortController()
    let answered = 0
    const asked = Array.from({ length: 40 }, () =>
      ask(leaving.signal, path).then(
        () => void answered++,
        () => {},
      ),
    )
    await until('the reads to be under way', async () => (await countSlow()) === expected)
    await send(neighbour, their, { subject: 'Not behind them' })
    await stage.receive(their.address, 'From: someone@far.test\nSubject: Nor this\n\nHello.\n')
    await new Visitor(stage).signIn(person.email)
    const { messages } = await neighbour.want<Page>(`/v1/inboxes/${their.id}/messages`)
    assert.equal(messages.length, 2)
    const [slow, busy] = [await countSlow(), answered]
    leaving.abort()
    await Promise.all(asked)
    // All of this completed before the first search was answered.
    assert.deepEqual([slow, busy], [expected, 0])
    await until('their statements to end', async () => (await countSlow()) === 0)
  }

  test('hostile 22: 40 reads at once hold a quarter of the connections, and delay no one’s sends or sign-ins', async () => {
    await stage.db.transaction(async (tx) => {
      await tx.query('lock table webhook')
      await crowd('/v1/webhooks', 4)
    })
  })

  test('hostile 22: 40 searches at once hold a third of the processors, or one, and delay no others', async () => {
    await crowd(slowSearch, Math.max(1, Math.min(4, Math.floor(availableParallelism() / 3))))
  })
})
