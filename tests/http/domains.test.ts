// Tests customers' domains over HTTP: which names can be registered, what the API shows, and which organization owns a name.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Domain, proveDomain, publish, registerDomain, verify } from '../support/customer-domain.ts'
import { DnsServer } from '../support/dns-server.ts'
import { nextKey } from './sending.ts'
import { type Caller, setStage } from './stage.ts'

const dns = await DnsServer.start()
const stage = await setStage({ after }, { dnsServer: dns.address })
after(() => dns.close())

type Refused = { error: string; message: string }

const post = ({ api }: Pick<Caller, 'api'>, domain: unknown) =>
  api.call<Domain & Refused>('/v1/domains', { method: 'POST', body: { domain } })
const show = ({ api }: Pick<Caller, 'api'>, { id }: { id: string }) => api.want<Domain>(`/v1/domains/${id}`)
const outcome = ({ status, body }: { status: number; body: { error?: string } | null }) => [
  status,
  body?.error,
]
const statuses = ({ status, capabilities }: Domain) =>
  [status, capabilities.outbound.status, capabilities.inbound.status].join(' ')
const record = ({ records }: Domain, purpose: string) => records.find((entry) => entry.purpose === purpose)!

test('check 56: a domain is registered in its one form, with the records to publish', async () => {
  const caller = await stage.createCaller()
  const { status, body } = await post(caller, ' Bücher.Example.\n')
  assert.equal(status, 201)
  assert.equal(body.domain, 'xn--bcher-kva.example')
  assert.equal(statuses(body), 'pending pending pending')
  assert.equal(body.verifiedAt, null)
  assert.deepEqual(
    body.records.map(({ purpose, type, required, status, observed, checkedAt }) => {
      assert.deepEqual([status, observed, checkedAt], ['pending', [], null])
      return `${purpose} ${type} ${required}`
    }),
    [
      ...['ownership TXT true', 'dkim TXT true', 'dkim TXT true', 'mx MX true', 'return_path MX true'],
      ...['spf TXT true', 'dmarc TXT false', 'mta_sts TXT false', 'tls_rpt TXT false'],
    ],
  )
  const [rsa, ed25519] = body.records.filter(({ purpose }) => purpose === 'dkim')
  assert.match(rsa!.value, /^v=DKIM1; k=rsa; p=[A-Za-z0-9+/=]{392}$/)
  assert.match(ed25519!.value, /^v=DKIM1; k=ed25519; p=[A-Za-z0-9+/=]{44}$/)
  assert.deepEqual(await show(caller, body), body)
  const again = await post(caller, 'XN--BCHER-KVA.example')
  assert.deepEqual([again.status, again.body], [201, body])
})

test('check 56: a name that cannot be owned is refused', async () => {
  const caller = await stage.createCaller()
  const refused = [
    '',
    ' ',
    '.',
    'a..b',
    'example.com..',
    `${'a'.repeat(63)}.`.repeat(3).concat('b'.repeat(60), '.ex'),
    '192.0.2.1',
  ]
  const others = [
    '[192.0.2.1]',
    'localhost',
    'co.uk',
    'github.io',
    'ex_ample.com',
    7,
    null,
    'x'.repeat(5_000),
    '☃.example',
  ]
  for (const domain of [...refused, ...others]) {
    const answer = await post(caller, domain)
    assert.deepEqual(outcome(answer), [400, 'invalid_request'], String(domain).slice(0, 50))
    assert.match(answer.body.message, /^\/domain /)
  }
  for (const domain of ['inbox.test', 'INBOX.test.', 'below.inbox.test'])
    assert.deepEqual(outcome(await post(caller, domain)), [409, 'domain_taken'])
})

test('check 56: a name too long to carry the challenge is accepted and says so', async () => {
  const caller = await stage.createCaller()
  const name = `${`${'a'.repeat(62)}.`.repeat(3)}${'b'.repeat(45)}.example`
  const domain = await verify(caller.api, await registerDomain(caller.api, name))
  assert.equal(record(domain, 'ownership').status, 'error')
  assert.equal(statuses(domain), 'pending pending pending')
  assert.match(domain.capabilities.inbound.reasons.join(), /253/)
})

test('the limit of domains is exact under parallel registration', async () => {
  const caller = await stage.createCaller({ limits: { domains: 3 } })
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) => post(caller, `parallel-${i}.example`)),
  )
  const codes = answers.map((answer) => outcome(answer).join(' ').trim()).sort()
  assert.deepEqual(codes, [...Array(3).fill('201'), ...Array(5).fill('403 limit_reached')])
  const own = answers.find(({ status }) => status === 201)!
  assert.deepEqual((await post(caller, own.body.domain)).body.id, own.body.id)
  assert.deepEqual(outcome(await post(caller, 'inbox.test')), [403, 'limit_reached'])
})

test('one name registered many times at once is one domain', async () => {
  const caller = await stage.createCaller({ limits: { domains: 1 } })
  const answers = await Promise.all(Array.from({ length: 4 }, () => post(caller, 'once.example')))
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
  assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1)
})

test('check 68: another organization’s domain does not exist', async () => {
  const [caller, stranger] = [await stage.createCaller(), await stage.createCaller()]
  const domain = await registerDomain(caller.api, 'mine.example')
  const unknown = { id: '00000000-0000-7000-8000-000000000000' }
  const operations = [
    ...[
      ['GET', ''],
      ['GET', '/zone'],
      ['POST', '/verify'],
      ['POST', '/rotate-dkim'],
    ],
  ] as [string, string][]
  for (const [method, path] of operations) {
    const [theirs, none] = await Promise.all(
      [domain, unknown].map(({ id }) => stranger.api.call(`/v1/domains/${id}${path}`, { method })),
    )
    assert.deepEqual(outcome(theirs!), [404, 'not_found'], `${method} ${path}`)
    assert.deepEqual(theirs!.body, none!.body)
  }
  for (const { id } of [domain, unknown])
    assert.equal((await stranger.api.call(`/v1/domains/${id}`, { method: 'DELETE' })).status, 204)
  assert.equal((await show(caller, domain)).id, domain.id)
  assert.deepEqual((await stranger.api.want<{ domains: [] }>('/v1/domains')).domains, [])
})

test('check 69: keys without the scope, or restricted to inboxes, cannot use domains', async () => {
  const caller = await stage.createCaller()
  const domain = await registerDomain(caller.api, 'keys.example')
  const restricted = await caller.createKey({ inboxIds: [(await caller.api.createInbox()).id as never] })
  const scopeless = await caller.createKey({ scopes: ['mailbox:manage'] })
  const operations = [
    ...[
      ['POST', '', { domain: 'keys.example' }],
      ['GET', ''],
      ['GET', `/${domain.id}`],
      ['GET', `/${domain.id}/zone`],
    ],
    ...[
      ['POST', `/${domain.id}/verify`],
      ['POST', `/${domain.id}/rotate-dkim`],
      ['DELETE', `/${domain.id}`],
    ],
  ] as [string, string, object?][]
  for (const [method, path, body] of operations) {
    const of = async ({ api }: Pick<Caller, 'api'>) =>
      outcome(await api.call(`/v1/domains${path}`, { method, body }))
    assert.deepEqual(await of(restricted), [403, 'inbox_not_allowed'], `${method} ${path}`)
    assert.deepEqual(await of(scopeless), [403, 'insufficient_scope'])
  }
})

test('domains are listed newest first, page by page', async () => {
  const caller = await stage.createCaller()
  const ids: string[] = []
  for (let i = 0; i < 5; i++) ids.unshift((await registerDomain(caller.api, `page-${i}.example`)).id)
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const path = `/v1/domains?limit=2${cursor && `&cursor=${cursor}`}`
    const page: { domains: Domain[]; nextCursor: string | null } = await caller.api.want(path)
    assert.ok(page.domains.length <= 2 && page.domains.every(({ records }) => records.length === 9))
    seen.push(...page.domains.map(({ id }) => id))
    cursor = page.nextCursor
  }
  assert.deepEqual(seen, ids)
})

test('check 56: sending and receiving are proved independently', async () => {
  const { api } = await stage.createCaller()
  const domain = await registerDomain(api, 'apart.example')
  publish(dns, domain, ['outbound'])
  const checked = await api.want<{ domain: Domain; checks: object[]; capabilities: object }>(
    `/v1/domains/${domain.id}/verify`,
    { method: 'POST' },
  )
  assert.deepEqual(checked.checks, checked.domain.records)
  assert.deepEqual(checked.capabilities, checked.domain.capabilities)
  assert.equal(statuses(checked.domain), 'verified verified pending')
  assert.deepEqual(checked.domain.capabilities.inbound.reasons, ['apart.example has no MX record.'])
  assert.ok(checked.domain.verifiedAt)
  assert.deepEqual(await show({ api }, domain), checked.domain)

  const second = await registerDomain(api, 'receives.example')
  publish(dns, second, ['inbound'])
  assert.equal(statuses(await verify(api, second)), 'verified pending verified')
  publish(dns, second, ['ownership'])
  const lost = await verify(api, second)
  assert.equal(statuses(lost), 'verified pending verified', 'one failed check takes nothing')
  assert.deepEqual([record(lost, 'mx').status, record(lost, 'mx').observed], ['missing', []])
})

test('check 56: wildcards, another organization’s token and other names prove nothing', async () => {
  const [caller, stranger] = [await stage.createCaller(), await stage.createCaller()]
  const [mine, theirs] = [
    await registerDomain(caller.api, 'claimed.example'),
    await registerDomain(stranger.api, 'claimed.example'),
  ]
  assert.notEqual(record(mine, 'ownership').value, record(theirs, 'ownership').value)
  const selectors = (domain: Domain) =>
    domain.records.filter(({ purpose }) => purpose === 'dkim').map(({ name }) => name)
  assert.equal(new Set([...selectors(mine), ...selectors(theirs)]).size, 4)
  publish(dns, theirs, ['outbound', 'inbound'])
  const judged = await verify(caller.api, mine)
  assert.equal(statuses(judged), 'pending pending pending')
  assert.deepEqual(
    [record(judged, 'ownership').status, record(judged, 'ownership').observed],
    ['mismatch', [record(theirs, 'ownership').value]],
  )
  dns.set('claimed.example', { TXT: [record(mine, 'ownership').value] })
  dns.set('_posthorn-challenge.claimed.example', { TXT: ['v=spf1 -all'] })
  assert.equal(statuses(await verify(caller.api, mine)), 'pending pending pending')
})

test('check 56: a claim blocks no one, a proof blocks everyone, and a late claimant learns it', async () => {
  const [first, second, third] = [
    await stage.createCaller(),
    await stage.createCaller(),
    await stage.createCaller(),
  ]
  const claim = await registerDomain(first.api, 'contested.example')
  const proved = await proveDomain(second.api, dns, 'contested.example', ['outbound', 'inbound'])
  assert.equal(statuses(proved), 'verified verified verified')
  assert.deepEqual(outcome(await post(third, 'contested.example')), [409, 'domain_taken'])
  assert.equal((await post(first, 'contested.example')).body.id, claim.id)

  publish(dns, claim, ['outbound', 'inbound'])
  const late = await verify(first.api, claim)
  assert.equal(statuses(late), 'pending pending pending')
  assert.equal(record(late, 'ownership').status, 'valid')
  for (const { reasons } of Object.values(late.capabilities))
    assert.match(reasons.join(), /Another organization/)

  assert.equal(
    statuses(await proveDomain(third.api, dns, 'sub.contested.example', ['inbound'])),
    'verified pending verified',
  )
  assert.equal((await second.api.call(`/v1/domains/${proved.id}`, { method: 'DELETE' })).status, 204)
  assert.equal(statuses(await verify(first.api, claim)), 'verified verified verified')
})

test('check 56: two parallel proofs of a name leave one owner', async () => {
  const callers = [await stage.createCaller(), await stage.createCaller(), await stage.createCaller()]
  const claims = await Promise.all(callers.map(({ api }) => registerDomain(api, 'race.example')))
  const values = claims.map((claim) => record(claim, 'ownership').value)
  dns.set('_posthorn-challenge.race.example', { TXT: values })
  const checks = [...claims, ...claims, ...claims].map((claim, i) => verify(callers[i % 3]!.api, claim))
  await Promise.all(checks)
  const after = await Promise.all(claims.map((claim, i) => show(callers[i]!, claim)))
  assert.deepEqual(after.map(({ status }) => status).sort(), ['pending', 'pending', 'verified'])
})

test('check 52: a DNS failure revokes nothing, and shows as an error', async () => {
  const { api } = await stage.createCaller()
  const domain = await proveDomain(api, dns, 'faulty.example', ['outbound', 'inbound'])
  assert.equal(statuses(domain), 'verified verified verified')
  const names = domain.records.map(({ name }) => name)
  for (const fault of ['SERVFAIL', 'REFUSED', 'garbage'] as const) {
    for (const name of names) dns.fail(name, fault)
    const checked = await verify(api, domain)
    assert.equal(statuses(checked), 'verified verified verified')
    assert.deepEqual(new Set(checked.records.map(({ status }) => status)), new Set(['error']))
    assert.match(checked.capabilities.outbound.reasons.join(), /could not be looked up/)
  }
  for (const name of names) dns.fail(name, 'truncated')
  const checked = await verify(api, domain)
  assert.deepEqual(checked.capabilities.outbound.reasons, [])
  for (const name of names) dns.fail(name, null)
})

test('check 57: a check judges by its own DNS answers, whatever DNS says a moment later', async () => {
  const { api } = await stage.createCaller()
  const domain = await registerDomain(api, 'once-asked.example')
  publish(dns, domain, ['outbound', 'inbound'])
  const before = dns.asked.length
  const checked = await verify(api, domain)
  const asked = dns.asked
    .slice(before)
    .filter(({ transport }) => transport === 'udp')
    .map(({ type, name }) => `${type} ${name}`)
  assert.equal(asked.length, domain.records.length)
  assert.equal(new Set(asked).size, asked.length)
  for (const { name } of domain.records) dns.set(name, {})
  const shownBefore = dns.asked.length
  assert.deepEqual(await show({ api }, domain), checked)
  assert.equal(dns.asked.length, shownBefore)
})

test('a record’s texts are shown within bounds, whatever they hold', async () => {
  const { api } = await stage.createCaller()
  const domain = await registerDomain(api, 'strange.example')
  dns.set('_posthorn-challenge.strange.example', {
    TXT: ['nul \u0000 and more', 'x'.repeat(50_000), ...Array.from({ length: 40 }, (_, i) => `text ${i}`)],
  })
  dns.set('strange.example', {
    MX: [
      [5, '.'],
      [10, 'other.example'],
    ],
  })
  const { records } = await verify(api, domain)
  const [ownership, mx] = [record({ records } as Domain, 'ownership'), record({ records } as Domain, 'mx')]
  assert.equal(ownership.status, 'mismatch')
  assert.equal(ownership.observed.length, 20)
  assert.ok(ownership.observed.includes('nul \ufffd and more'))
  assert.deepEqual([mx.status, mx.observed], ['mismatch', ['.', 'other.example']])
})

test('the zone fragment holds every record', async () => {
  const { api, secret } = await stage.createCaller()
  const domain = await registerDomain(api, 'zone.example')
  const response = await fetch(`${stage.base}/v1/domains/${domain.id}/zone`, {
    headers: { 'x-api-key': secret },
  })
  assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8')
  const text = await response.text()
  for (const { name, type, value, priority } of domain.records) {
    const line = text
      .split('\n')
      .find((each) => each.startsWith(`${name}. `) && each.includes(` IN ${type} `))!
    const shown =
      type === 'MX'
        ? `${priority} ${value}.`
        : [...line.matchAll(/"([^"]*)"/g)].map(([, part]) => part).join('')
    assert.equal(type === 'MX' ? line.split(' MX ')[1] : shown, type === 'MX' ? shown : value)
  }
})

test('rotated keys wait next to the old ones, and replace them once DNS shows them', async () => {
  const { api } = await stage.createCaller()
  const domain = await proveDomain(api, dns, 'rotate.example', ['outbound'])
  const keys = ({ records }: Domain) =>
    records.filter(({ purpose }) => purpose === 'dkim').map(({ required, status }) => `${required} ${status}`)
  const rotate = () => api.want<Domain>(`/v1/domains/${domain.id}/rotate-dkim`, { method: 'POST' })
  assert.deepEqual(keys(domain), ['true valid', 'true valid'])
  const [rotated] = await Promise.all([rotate(), rotate(), rotate()])
  assert.deepEqual(keys(rotated), ['true valid', 'true valid', 'true pending', 'true pending'])
  assert.deepEqual((await rotate()).records, rotated.records, 'those that wait are enough')
  assert.deepEqual(keys(await verify(api, domain)), [
    'true valid',
    'true valid',
    'true missing',
    'true missing',
  ])
  publish(dns, rotated, ['outbound'])
  const seen = await verify(api, domain)
  assert.deepEqual(keys(seen), ['false valid', 'false valid', 'true valid', 'true valid'])
  assert.equal(statuses(seen), 'verified verified pending')
  const states = await stage.db.query<{ state: string }>(
    'select state from dkim_key where domain_id = $1 order by created_at, algorithm desc',
    [domain.id],
  )
  assert.deepEqual(
    states.map(({ state }) => state),
    ['retired', 'retired', 'active', 'active'],
  )
})

test('a key is rotated alone if only the other was published', async () => {
  const { api } = await stage.createCaller()
  const domain = await registerDomain(api, 'half.example')
  const [rsa] = domain.records.filter(({ purpose }) => purpose === 'dkim')
  publish(
    dns,
    { ...domain, records: domain.records.filter(({ purpose }) => purpose !== 'dkim').concat(rsa!) },
    ['outbound'],
  )
  assert.equal(statuses(await verify(api, domain)), 'verified verified pending')
  const rotated = await api.want<Domain>(`/v1/domains/${domain.id}/rotate-dkim`, { method: 'POST' })
  const values = rotated.records
    .filter(({ purpose }) => purpose === 'dkim')
    .map(({ value }) => value.split(';')[1])
  assert.deepEqual(values, [' k=rsa', ' k=ed25519', ' k=rsa'])
})

test('a domain without inboxes is deleted with its keys and its waiting mail', async () => {
  const { api } = await stage.createCaller()
  const domain = await proveDomain(api, dns, 'going.example', ['outbound', 'inbound'])
  const remove = async () => outcome(await api.call(`/v1/domains/${domain.id}`, { method: 'DELETE' }))
  const inbox = await api.want<{ id: string }>('/v1/inboxes', {
    method: 'POST',
    body: { domainId: domain.id },
    status: 201,
  })
  assert.deepEqual(await remove(), [409, 'domain_in_use'])
  await api.call(`/v1/inboxes/${inbox.id}`, { method: 'DELETE' })
  const mail = {
    from: { email: 'a@going.example' },
    to: [{ email: 'b@far.test' }],
    subject: 'Hello',
    text: 'There',
  }
  const sent = await api.want<{ id: string }>('/v1/send', {
    method: 'POST',
    body: mail,
    idempotencyKey: nextKey(),
    status: 202,
  })
  assert.deepEqual(await remove(), [204, undefined])
  assert.deepEqual(await remove(), [204, undefined])
  const submission = await api.want<{ status: string; failureCode: string }>(`/v1/submissions/${sent.id}`)
  assert.deepEqual([submission.status, submission.failureCode], ['failed', 'cancelled'])
  assert.deepEqual(await stage.db.query('select from dkim_key where domain = $1', ['going.example']), [])
  assert.deepEqual(outcome(await api.call(`/v1/domains/${domain.id}`)), [404, 'not_found'])
})
