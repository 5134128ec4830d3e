// Customers' domains in use: the mail that they receive and send, and what a change of their proof does to it.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { after, afterEach, test } from 'node:test'
import type { OrganizationId, SubmissionId } from '../../src/base/ids.ts'
import { flushQueue, pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { SendingIdentities } from '../../src/flow/delivering/sending-identity.ts'
import { switchOneClick } from '../../src/flow/domains/change-one-click.ts'
import { ProvedDomains } from '../../src/flow/proved-domains.ts'
import { moveDeliveries } from '../../src/flow/route-policy.ts'
import { purgeContents } from '../../src/flow/upkeep/purge-contents.ts'
import { returnPathOf } from '../../src/mail/return-path.ts'
import { insertRoutes } from '../../src/store/sending/routes.ts'
import type { Api, Inbox, Submission } from '../support/api.ts'
import { type Domain, proveDomain, publish, registerDomain, verify } from '../support/customer-domain.ts'
import { mailauth } from '../support/dkim-judges.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { type Rule, startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'
import { stuff, Wire } from '../support/wire.ts'

const hourMs = 3_600_000

const place = await makePlace({ after })
const dns = await DnsServer.start({
  'far.test': { MX: [[10, 'mx.far.test']] },
  'other.test': { MX: [[10, 'mx.far.test']] },
  'mx.far.test': { A: ['127.0.0.1'] },
})
place.after(() => dns.close())
/** Takes all mail to other domains. */
const sink = await startSink(place)
const env = {
  POSTHORN_DNS: dns.address,
  POSTHORN_DELIVERY: 'direct',
  POSTHORN_MX_PORT: String(sink.port),
  POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  POSTHORN_MAIL_HOST: 'mx.posthorn.test',
  POSTHORN_PUBLIC_URL: 'https://mail.posthorn.test',
}
/** Tests move its clock by days, so each test proves domains of its own. */
const node = await startNode(place, { env })
const { db, clock } = node.foundation
afterEach(() => {
  sink.rule = asUsual
})

/** The copies of mail that names this sender. */
const copiesFrom = (sender: string) => sink.copies.filter(({ raw }) => raw.includes(sender))

const openOn = (api: Api, { id }: Domain, localPart: string) =>
  api.want<Inbox>('/v1/inboxes', { method: 'POST', body: { domainId: id, localPart }, status: 201 })

const mail = { subject: 'Hello', text: 'There' }

function post(
  api: Api,
  from: string,
  to: string[],
  change: object = {},
  idempotencyKey: string = randomUUID(),
) {
  const body = { ...mail, from: { email: from }, to: to.map((email) => ({ email })), ...change }
  return api.call<Submission & { error: string; replayed: boolean }>('/v1/send', {
    method: 'POST',
    body,
    idempotencyKey,
  })
}

async function sent(api: Api, from: string, to: string[], change: object = {}): Promise<Submission> {
  const { status, body } = await post(api, from, to, change)
  assert.equal(status, 202, JSON.stringify(body))
  return body
}

/** Sends a message to each address separately. Returns the replies to RCPT, or to the message if RCPT was accepted. */
async function deliver(to: string[], { smtp } = node): Promise<string[]> {
  const raw = 'Subject: In\r\n\r\nHello.\r\n'
  const socket = connect({ ...smtp, noDelay: true })
  const wire = new Wire(socket)
  const ask = async (words: string | Buffer) => {
    await wire.write(words)
    return (await wire.reply()) ?? 'lost'
  }
  try {
    await wire.reply()
    await ask('EHLO sender.test\r\n')
    const replies: string[] = []
    for (const address of to) {
      await ask('MAIL FROM:<someone@far.test>\r\n')
      const taken = await ask(`RCPT TO:<${address}>\r\n`)
      if (taken.startsWith('250')) await ask('DATA\r\n')
      replies.push(taken.startsWith('250') ? await ask(stuff(Buffer.from(raw))) : taken)
      await ask('RSET\r\n')
    }
    return replies.map((reply) => reply.slice(0, 9))
  } finally {
    socket.destroy()
  }
}

const notNow: Rule = ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 not now' : null)
const asUsual: Rule = () => null

/** Nodes cache domains for up to one second. */
const soon = () => clock.advance(1_000)

const fieldOf = (raw: Buffer, name: string) =>
  [
    ...raw
      .toString('latin1')
      .split('\r\n\r\n')[0]!
      .replace(/\r\n[ \t]+/g, ' ')
      .matchAll(/^([\w-]+): ?(.*)$/gm),
  ]
    .filter(([, field]) => field!.toLowerCase() === name)
    .map(([, , value]) => value!)

const signers = (raw: Buffer) =>
  fieldOf(raw, 'dkim-signature').map(
    (value) =>
      `${/ a=([\w-]+)/.exec(value)?.[1]} ${/s=([\w-]+)/.exec(value)?.[1]}._domainkey.${/d=([\w.-]+)/.exec(value)?.[1]}`,
  )

const keysOf = ({ records }: Domain) =>
  Object.fromEntries(
    records.filter(({ purpose }) => purpose === 'dkim').map(({ name, value }) => [name, value]),
  )

const eventsOf = async (api: Api, { id }: { id: string }) => {
  type Events = { events: { type: string; classification: string | null }[] }
  return (await api.want<Events>(`/v1/submissions/${id}/events`)).events
}

test('a one-click link is signed, unsubscribes its recipient alone by POST, and changes nothing by GET', async () => {
  const caller = await node.createCaller()
  const { api } = caller
  const shop = await proveDomain(api, dns, 'oneclick.example', ['outbound'])
  const from = 'shop@oneclick.example'
  const before = await sent(api, from, ['a@far.test'])
  await untilStates(api, before.id, 'delivered')
  await switchOneClick(node.foundation, 'oneclick.example', 'on')
  soon()
  const single = await sent(api, from, ['a@far.test'])
  const shared = await sent(api, from, ['a@far.test', 'b@far.test'])
  await untilStates(api, single.id, 'delivered')
  await untilStates(api, shared.id, 'delivered', 'delivered')
  const links = copiesFrom(`From: ${from}`).flatMap(({ raw }) => fieldOf(raw, 'list-unsubscribe'))
  assert.equal(links.length, 1, 'not before it was turned on, nor in mail that two recipients share')
  const { raw } = copiesFrom(`From: ${from}`).find(({ raw }) => fieldOf(raw, 'list-unsubscribe').length > 0)!
  assert.deepEqual(fieldOf(raw, 'list-unsubscribe-post'), ['List-Unsubscribe=One-Click'])
  for (const signature of fieldOf(raw, 'dkim-signature'))
    assert.match(
      signature.replace(/\s/g, ''),
      /:list-unsubscribe:list-unsubscribe:list-unsubscribe-post:list-unsubscribe-post:/,
    )
  assert.deepEqual(await mailauth.verify([raw], keysOf(shop)), [true])
  const [, path = ''] = /^<https:\/\/mail\.posthorn\.test(\/unsubscribe\/[\w-]{40})>$/.exec(links[0]!) ?? []

  const { host, port } = node.app.listening.http!
  const ask = (
    method: string,
    way = path,
    body?: string | FormData,
    type = 'application/x-www-form-urlencoded',
  ) =>
    fetch(`http://${host}:${port}${way}`, {
      method,
      ...(body !== undefined && { body }),
      ...(typeof body === 'string' && { headers: { 'content-type': type } }),
    })
  const reasons = async () =>
    (
      await api.want<{ suppressions: { email: string; reason: string }[] }>('/v1/suppressions')
    ).suppressions.map(({ email, reason }) => `${email} ${reason}`)
  const page = await ask('GET')
  assert.match(await page.text(), /<button name="List-Unsubscribe" value="One-Click">/)
  assert.match(page.headers.get('content-security-policy')!, /default-src 'none'/)
  const forged = `${path.slice(0, -1)}${path.endsWith('A') ? 'B' : 'A'}`
  const wrong = [
    (await ask('POST')).status,
    (await ask('POST', path, 'a=b')).status,
    (await ask('POST', path, 'x'.repeat(5_000))).status,
    (await ask('POST', path, '{}', 'application/json')).status,
    (await ask('POST', forged, 'List-Unsubscribe=One-Click')).status,
    (await ask('GET', forged)).status,
  ]
  assert.deepEqual(wrong, [400, 400, 413, 400, 404, 404])
  assert.deepEqual(await reasons(), [])

  const form = new FormData()
  form.set('List-Unsubscribe', 'One-Click')
  for (const body of [form, 'List-Unsubscribe=One-Click']) {
    assert.equal((await ask('POST', path, body)).status, 200)
    assert.deepEqual(await reasons(), ['a@far.test unsubscribe'])
  }
  const { db } = node.foundation
  const posts = await db.transaction(async (tx) => {
    await tx.query('lock table suppression in share mode')
    const waiting = Array.from({ length: 40 }, () => ask('POST', path, 'List-Unsubscribe=One-Click'))
    await until('one to wait for the lock', async () => {
      const rows = await tx.query(
        `select from pg_locks where not granted and relation = 'suppression'::regclass`,
      )
      return rows.length > 0
    })
    await api.want('/v1/inboxes')
    return waiting
  })
  const statuses = await Promise.all(posts.map(async (answer) => (await answer).status))
  assert.deepEqual([...new Set(statuses)], [200], 'a link that is used without end takes one connection')
  const refused = await post(api, from, ['a@far.test'])
  assert.deepEqual([refused.status, refused.body.error], [422, 'all_recipients_suppressed'])
  const other = await node.createCaller()
  const { suppressions } = await other.api.want<{ suppressions: object[] }>('/v1/suppressions')
  assert.deepEqual(suppressions, [])
  await assert.rejects(switchOneClick(node.foundation, 'nowhere.example', 'on'), { code: 'not_found' })
})

test('a domain proved for sending carries sends and inbox mail, and one proved only for receiving carries neither', async () => {
  const { api } = await node.createCaller()
  const sends = await proveDomain(api, dns, 'sends.example', ['outbound'])
  const reads = await proveDomain(api, dns, 'reads.example', ['inbound'])
  assert.deepEqual(
    [sends, reads].map(({ capabilities: { outbound, inbound } }) => [outbound.status, inbound.status]),
    [
      ['verified', 'pending'],
      ['pending', 'verified'],
    ],
  )
  const [from, silent] = [await openOn(api, sends, 'desk'), await openOn(api, reads, 'desk')]

  const { message, submission } = await send(api, from, ['a@far.test'])
  const direct = await sent(api, 'shop@sends.example', ['b@far.test'], {
    headers: { 'x-campaign': 'spring' },
  })
  for (const { id } of [submission, direct]) await untilStates(api, id, 'delivered')
  const [inboxed, through] = ['a@far.test', 'b@far.test'].map(
    (to) => copiesFrom('@sends.example').find(({ recipient }) => recipient === to)!,
  )
  assert.equal(inboxed!.messageId, message.internetMessageId)
  assert.match(through!.messageId, /^<[0-9a-f]{24}@sends\.example>$/)
  assert.deepEqual(fieldOf(through!.raw, 'x-campaign'), ['spring'])
  assert.deepEqual(fieldOf(through!.raw, 'auto-submitted'), ['auto-generated'])
  assert.match(fieldOf(through!.raw, 'feedback-id').join(), /^[0-9a-f]{12}:[0-9a-f]{12}:send:[0-9a-f]{12}$/)
  assert.deepEqual(fieldOf(inboxed!.raw, 'feedback-id'), [], 'mail from an inbox is a conversation')
  assert.match(through!.raw.toString(), /^DKIM-Signature:(?:.*\r\n[ \t])*.*:feedback-id:\s*feedback-id;/m)
  assert.deepEqual(fieldOf(through!.raw, 'from'), ['shop@sends.example'])
  for (const { raw, from } of [inboxed!, through!]) {
    assert.match(from, /^bounce-[a-z2-7]{48}@bounce\.sends\.example$/)
    assert.deepEqual(
      signers(raw).map((signer) => signer.split(' ')[0]),
      ['rsa-sha256', 'ed25519-sha256'],
    )
    assert.deepEqual(await mailauth.verify([raw], keysOf(sends)), [true])
  }

  const refused = {
    method: 'POST',
    idempotencyKey: 'refused-1',
    body: { ...mail, to: [{ email: 'a@far.test' }] },
  }
  const inboxRefusal = await api.call(`/v1/inboxes/${silent.id}/messages`, refused)
  assert.deepEqual([inboxRefusal.status, inboxRefusal.body.error], [403, 'sender_not_allowed'])
  const sendRefusal = await post(api, 'desk@reads.example', ['a@far.test'])
  assert.deepEqual([sendRefusal.status, sendRefusal.body.error], [403, 'sender_not_allowed'])

  // The inbox cannot reply to received mail either.
  assert.deepEqual(await deliver([silent.address]), ['250 2.0.0'])
  const received = await until('the mail', async () => (await api.exported(silent.id))[0])
  const reply = await api.call(`/v1/threads/${received.threadId}/replies`, {
    method: 'POST',
    idempotencyKey: 'refused-2',
    body: { targetMessageId: received.id, text: 'No.' },
  })
  assert.deepEqual([reply.status, reply.body.error], [403, 'sender_not_allowed'])

  // A refusal uses up no idempotency key: once the domain is proved, the same request is sent.
  publish(dns, reads, ['inbound', 'outbound'])
  await verify(api, reads)
  soon()
  assert.equal((await api.call(`/v1/inboxes/${silent.id}/messages`, refused)).status, 202)
})

test('check 10: mail is accepted only for domains with proved ownership', async () => {
  const { api } = await node.createCaller()
  const other = await node.createCaller()
  const domain = await proveDomain(api, dns, 'owned.example', ['ownership'])
  await registerDomain(api, 'claimed.example')
  const inbox = await openOn(api, domain, 'info')
  const { secretBox } = node.foundation
  const token = { submissionId: randomUUID() as SubmissionId, position: 0 }
  const bounceTo = (host: string) => returnPathOf(secretBox, token, host, clock.now())
  const elsewhere = bounceTo('inbox.test').replace('@inbox.test', '@bounce.owned.example')
  const cases: [address: string, reply: string][] = [
    ['info@owned.example', '250 2.0.0'],
    ['INFO+tag@Owned.Example', '250 2.0.0'],
    ['nobody@owned.example', '550 5.1.1'],
    ['postmaster@owned.example', '250 2.0.0'],
    ['abuse@owned.example', '250 2.0.0'],
    ['fbl@owned.example', '250 2.0.0'],
    [bounceTo('owned.example'), '250 2.0.0'],
    [bounceTo('bounce.owned.example'), '250 2.0.0'],
    [elsewhere, '550 5.1.1'],
    ['bounce-x@bounce.owned.example', '550 5.1.1'],
    ['info@bounce.owned.example', '550 5.1.1'],
    ['postmaster@bounce.owned.example', '250 2.0.0'],
    ['info@sub.owned.example', '550 5.7.1'],
    ['info@bounce.bounce.owned.example', '550 5.7.1'],
    ['postmaster@claimed.example', '550 5.7.1'],
    [bounceTo('bounce.claimed.example'), '550 5.7.1'],
    ['info@unknown.example', '550 5.7.1'],
  ]
  const replies = await deliver(cases.map(([address]) => address))
  assert.deepEqual(
    cases.map(([address], i) => [address, replies[i]]),
    cases,
  )
  const messages = await until('both', async () => {
    const all = await api.exported(inbox.id)
    return all.length === 2 ? all : null
  })
  assert.deepEqual((await other.api.call(`/v1/messages/${messages[0]!.id}`)).status, 404)
})

test('a domain that another organization proves later receives only for that organization', async () => {
  const { api } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'sold.example', ['inbound', 'outbound'])
  const old = await openOn(api, domain, 'info')
  assert.deepEqual(await deliver([old.address]), ['250 2.0.0'])
  await until('the mail', async () => (await api.exported(old.id)).length === 1)
  publish(dns, domain, [])
  for (let checks = 0; checks < 4; checks++) {
    await verify(api, domain)
    clock.advance(25 * hourMs)
  }
  assert.equal((await verify(api, domain)).status, 'failed')
  assert.deepEqual(await deliver([old.address]), ['550 5.7.1'])
  const buyer = await node.createCaller()
  const theirs = await proveDomain(buyer.api, dns, 'sold.example', ['inbound', 'outbound'])
  assert.deepEqual(await deliver([old.address]), ['550 5.1.1'])
  // The former owner has not deleted the address, and cannot withhold it from the current owner.
  const fresh = await openOn(buyer.api, theirs, 'info')
  assert.equal(fresh.address, old.address)
  assert.deepEqual(await deliver([old.address]), ['250 2.0.0'])
  await until('the mail', async () => (await buyer.api.exported(fresh.id)).length === 1)
  assert.equal((await api.exported(old.id)).length, 1)
  const refused = await post(api, 'info@sold.example', ['a@far.test'])
  assert.deepEqual([refused.status, refused.body.error], [403, 'sender_not_allowed'])
})

// Another node too: each has its own cache.
test('every node accepts mail for a domain or inbox as soon as it is proved or opened', async (t) => {
  const caller = await node.createCaller()
  const { api } = caller
  const second = await startNode(place, { env, roles: ['mx', 'api'] })
  t.after(() => second.stop())
  second.foundation.clock.advance(clock.nowMs() - second.foundation.clock.nowMs())
  const there = second.meet(caller)
  const repliesTo = async (address: string) => [
    ...(await deliver([address])),
    ...(await deliver([address], second)),
  ]
  const sends = async (from: string) => [
    (await post(api, from, ['a@far.test'])).status,
    (await post(there, from, ['a@far.test'])).status,
  ]
  assert.deepEqual(await repliesTo('info@soon.example'), ['550 5.7.1', '550 5.7.1'])
  assert.deepEqual(await sends('shop@soon.example'), [403, 403])
  const domain = await proveDomain(api, dns, 'soon.example', ['inbound'])
  assert.deepEqual(await repliesTo('info@soon.example'), ['550 5.1.1', '550 5.1.1'])
  assert.deepEqual(await sends('shop@soon.example'), [403, 403])
  publish(dns, domain, ['inbound', 'outbound'])
  await verify(api, domain)
  assert.deepEqual(await sends('shop@soon.example'), [202, 202])

  const inbox = await openOn(api, domain, 'info')
  assert.deepEqual(await repliesTo(inbox.address), ['250 2.0.0', '250 2.0.0'])
  assert.equal((await api.call(`/v1/inboxes/${inbox.id}`, { method: 'DELETE' })).status, 204)
  const reopened = await openOn(api, domain, 'info')
  assert.deepEqual(await repliesTo(inbox.address), ['250 2.0.0', '250 2.0.0'])
  await until('the mail', async () => (await api.exported(reopened.id)).length === 2)
})

test('mail to a customer’s domain goes to our own MX if its MX is proved, else by DNS', async () => {
  const [{ api }, writer] = [await node.createCaller(), await node.createCaller()]
  const from = await writer.api.createInbox()
  const [ours, elsewhere] = [
    await proveDomain(api, dns, 'ours.example', ['inbound']),
    await proveDomain(api, dns, 'elsewhere.example', ['ownership']),
  ]
  const [here, there] = [await openOn(api, ours, 'info'), await openOn(api, elsewhere, 'info')]
  dns.set('elsewhere.example', { MX: [[10, 'mx.far.test']] })
  const asked = dns.asked.length
  const { submission } = await send(writer.api, from, [here.address, there.address])
  await untilStates(writer.api, submission.id, 'delivered', 'delivered')
  await until('the mail', async () => (await api.exported(here.id)).length === 1)
  assert.deepEqual(
    copiesFrom(from.address).map(({ recipient }) => recipient),
    [there.address],
  )
  assert.deepEqual(await api.exported(there.id), [])
  const names = dns.asked.slice(asked).map(({ name }) => name)
  assert.ok(names.includes('elsewhere.example') && !names.includes('ours.example'), names.join(' '))
})

test('waiting mail moves to our own MX, or away from it, with the domain’s proof', async () => {
  const [{ api }, writer] = [await node.createCaller(), await node.createCaller()]
  const domain = await proveDomain(api, dns, 'moves.example', ['ownership'])
  const inbox = await openOn(api, domain, 'info')
  dns.set('moves.example', { MX: [[10, 'mx.far.test']] })
  sink.rule = notNow
  const away = await send(writer.api, await writer.api.createInbox(), [inbox.address])
  await untilStates(writer.api, away.submission.id, 'deferred')
  publish(dns, domain, ['inbound'])
  assert.equal((await verify(api, domain)).capabilities.inbound.status, 'verified')
  const route = async () => {
    const sql = 'select route from delivery where submission_id = $1'
    return (await db.query<{ route: string }>(sql, [away.submission.id]))[0]!.route
  }
  assert.equal(await route(), 'moves.example')
  assert.equal(await moveDeliveries(node.foundation, 'direct', 'inbox.test'), 1)
  assert.equal(await route(), '@local')
  assert.equal(await moveDeliveries(node.foundation, 'direct', 'inbox.test'), 0)
  await flushQueue(node.foundation, '@local')
  await untilStates(writer.api, away.submission.id, 'delivered')
  await until('the mail', async () => (await api.exported(inbox.id)).length === 1)
})

test('check 45: waiting mail is signed when it is sent, by keys that DNS has shown', async () => {
  const { api } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'turns.example', ['outbound'])
  const inbox = await openOn(api, domain, 'desk')
  const copyTo = async (to: string) => {
    const both = [(await send(api, inbox, [to])).submission, await sent(api, 'x@turns.example', [`x${to}`])]
    for (const { id } of both) await untilStates(api, id, 'delivered')
    return sink.copies.filter(({ recipient }) => recipient.endsWith(to)).map(({ raw }) => raw)
  }
  const selectors = async () =>
    (await copyTo(`${randomUUID()}@far.test`)).map((raw) => signers(raw).join(' + '))
  const [first, second] = await selectors()
  assert.equal(first, second)

  const rotated = await api.want<Domain>(`/v1/domains/${domain.id}/rotate-dkim`, { method: 'POST' })
  soon()
  assert.deepEqual(await selectors(), [first, first])

  sink.rule = notNow
  const { submission } = await send(api, inbox, ['waits@far.test'])
  await untilStates(api, submission.id, 'deferred')
  publish(dns, rotated, ['outbound'])
  await verify(api, rotated)
  soon()
  sink.rule = asUsual
  await flushQueue(node.foundation, 'far.test')
  await untilStates(api, submission.id, 'delivered')
  const { raw } = sink.copies.find(({ recipient }) => recipient === 'waits@far.test')!
  const fresh = keysOf(rotated)
  const before = keysOf(domain)
  assert.equal(signers(raw).length, 2)
  for (const signer of signers(raw)) {
    const name = signer.split(' ')[1]!
    assert.ok(name in fresh && !(name in before), name)
  }
  assert.deepEqual(await mailauth.verify([raw], fresh), [true])
})

test('mail is signed with the one selector that DNS shows', async () => {
  const { api } = await node.createCaller()
  const domain = await registerDomain(api, 'single.example')
  publish(dns, domain, ['outbound'])
  const [rsa, ed25519] = domain.records.filter(({ purpose }) => purpose === 'dkim')
  dns.set(rsa!.name, {})
  assert.equal((await verify(api, domain)).capabilities.outbound.status, 'verified')
  const { id } = await sent(api, 'x@single.example', ['a@far.test'])
  await untilStates(api, id, 'delivered')
  assert.deepEqual(signers(copiesFrom('@single.example')[0]!.raw), [`ed25519-sha256 ${ed25519!.name}`])
})

test('mail of a domain that lost its proof waits, and leaves once the domain is proved again', async () => {
  const { api } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'lost.example', ['outbound'])
  const inbox = await openOn(api, domain, 'desk')
  publish(dns, domain, ['ownership'])
  for (let checks = 0; checks < 2; checks++) {
    await verify(api, domain)
    // The node itself must not check the domain meanwhile.
    await node.foundation.db.query('update domain set next_check_at = null where id = $1', [domain.id])
    clock.advance(36 * hourMs)
  }
  // The domain is still proved, because losing proof takes three failed checks.
  sink.rule = notNow
  const accepted = [
    (await send(api, inbox, ['a@far.test'])).submission,
    await sent(api, 'x@lost.example', ['b@far.test']),
  ]
  for (const { id } of accepted) await untilStates(api, id, 'deferred')
  assert.equal((await verify(api, domain)).capabilities.outbound.status, 'failed')
  soon()
  assert.equal((await post(api, 'x@lost.example', ['c@far.test'])).body.error, 'sender_not_allowed')
  sink.rule = asUsual
  await flushQueue(node.foundation, 'far.test')
  for (const submission of accepted) {
    const events = await until('it to be withheld', async () => {
      const all = await eventsOf(api, submission)
      return all.length === 5 ? all : null
    })
    assert.deepEqual(
      events.map(({ type, classification }) => [type, classification]),
      [
        ['accepted', null],
        ['queued', null],
        ['attempted', null],
        ['deferred', 'other'],
        ['deferred', 'policy'],
      ],
    )
  }
  assert.equal(copiesFrom('@lost.example').length, 0)
  publish(dns, domain, ['outbound'])
  await verify(api, domain)
  soon()
  await flushQueue(node.foundation, 'far.test')
  for (const { id } of accepted) await untilStates(api, id, 'delivered')
  assert.equal(copiesFrom('@lost.example').length, 2)
})

test('deleting a domain cancels its waiting mail, and an overlooked mail is cancelled when it is due', async () => {
  const { api } = await node.createCaller()
  const remove = ({ id }: Domain) => api.want(`/v1/domains/${id}`, { method: 'DELETE', status: 204 })
  const [one, two] = [
    await proveDomain(api, dns, 'one.example', ['outbound']),
    await proveDomain(api, dns, 'two.example', ['outbound']),
  ]
  sink.rule = notNow
  const waiting = await sent(api, 'x@one.example', ['a@far.test', 'b@far.test'])
  const late = await sent(api, 'x@two.example', ['c@far.test'])
  await untilStates(api, waiting.id, 'deferred', 'deferred')
  await untilStates(api, late.id, 'deferred')
  await remove(one)
  await untilStates(api, waiting.id, 'failed', 'failed')
  // As an acceptance does that begins before the deletion and commits after it.
  await db.query('delete from domain where id = $1', [two.id])
  soon()
  sink.rule = asUsual
  await flushQueue(node.foundation, 'far.test')
  await untilStates(api, late.id, 'failed')
  const { failureCode } = await api.want<{ failureCode: string }>(`/v1/submissions/${late.id}`)
  assert.equal(failureCode, 'cancelled')
  assert.equal((await eventsOf(api, late)).at(-1)!.type, 'cancelled')
  assert.deepEqual([...copiesFrom('@one.example'), ...copiesFrom('@two.example')], [])
})

test('a domain with a long queue is deleted in parts, each committed on its own', async () => {
  const { api } = await node.createCaller()
  const domain = await proveDomain(api, dns, 'long.example', ['outbound'])
  await insertRoutes(db.writer, ['paused.test'], clock.now())
  await pauseQueue(node.foundation, 'paused.test', 'paused')
  const people = (name: string) => Array.from({ length: 600 }, (_, i) => `${name}${i}@paused.test`)
  const both = [
    await sent(api, 'x@long.example', people('a')),
    await sent(api, 'x@long.example', people('b')),
  ]
  await api.want(`/v1/domains/${domain.id}`, { method: 'DELETE', status: 204 })
  for (const { id } of both) {
    const { status, recipients, failureCode } = await api.want<Submission & { failureCode: string }>(
      `/v1/submissions/${id}`,
    )
    assert.deepEqual([status, failureCode], ['failed', 'cancelled'])
    assert.ok(recipients.every((recipient) => recipient.status === 'failed'))
  }
  const [row] = await db.query<{ commits: number }>(
    'select count(distinct xmin::text) as commits from delivery where submission_id = any($1)',
    [both.map(({ id }) => id)],
  )
  assert.equal(row!.commits, 3)
})

test('a send through a domain has the same bytes at every delivery, and its content ends with its lifetime', async () => {
  const { api } = await node.createCaller()
  await proveDomain(api, dns, 'bytes.example', ['outbound'])
  const content = {
    html: '<p>There</p>',
    replyTo: { email: 'help@bytes.example' },
    headers: { 'x-entity-ref-id': '7' },
  }
  const from = { email: 'x@bytes.example', name: 'Bytes, "Ltd."' }
  let refusals = 1
  sink.rule = ({ stage, recipients }) =>
    stage === 'message' && recipients.includes('b@other.test') && refusals-- > 0
      ? '451 4.3.0 once more'
      : null
  const key = randomUUID()
  const first = await post(api, '', ['a@far.test', 'b@other.test'], { ...content, from }, key)
  await untilStates(api, first.body.id, 'delivered', 'deferred')
  clock.advance(2 * 60_000)
  await untilStates(api, first.body.id, 'delivered', 'delivered')
  const copies = copiesFrom('@bytes.example')
  assert.equal(copies.length, 2)
  assert.deepEqual(copies[0]!.raw, copies[1]!.raw)
  assert.deepEqual(fieldOf(copies[0]!.raw, 'reply-to'), ['help@bytes.example'])
  assert.deepEqual(fieldOf(copies[0]!.raw, 'x-entity-ref-id'), ['7'])

  const count = async () =>
    (await db.query('select from send_content where submission_id = $1', [first.body.id])).length
  await purgeContents(node.foundation, 72 * hourMs, 100)
  assert.equal(await count(), 1)
  clock.advance(72 * hourMs)
  await purgeContents(node.foundation, 72 * hourMs, 100)
  assert.equal(await count(), 0)
  const again = await post(api, '', ['a@far.test', 'b@other.test'], { ...content, from }, key)
  assert.deepEqual([again.status, again.body.replayed, again.body.status], [202, true, 'delivered'])
})

test('a key that cannot be opened affects only its own domain', async () => {
  const { api, organizationId } = await node.createCaller()
  const names = ['broken.example', 'whole.example']
  const [broken] = await Promise.all(names.map((name) => proveDomain(api, dns, name, ['outbound'])))
  const { log, secretBox } = node.foundation
  await db.query(`update dkim_key set sealed_key = 'broken' where domain_id = $1`, [broken!.id])
  const domains = new ProvedDomains({ db, clock })
  const identities = new SendingIdentities({
    db,
    clock,
    log,
    secretBox,
    domains,
    managedDomain: 'inbox.test',
  })
  // Concurrent requests share one look-up.
  const ask = () =>
    Promise.all(names.map((name) => identities.of(organizationId as OrganizationId, name, 'domain')))
  const [first, whole] = await ask()
  // The mail waits, and the log gives the reason once per key.
  assert.equal(first, 'unproved')
  clock.advance(1_500)
  assert.equal((await ask())[0], 'unproved')
  assert.equal(node.log().split('DKIM key could not be opened').length - 1, 2)
  assert.ok(typeof whole === 'object')
  assert.deepEqual(
    whole.keys.map(({ domain }) => domain),
    ['whole.example', 'whole.example'],
  )
})
