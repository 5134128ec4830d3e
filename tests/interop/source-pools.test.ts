// Pools of source addresses: which address and name each mail comes from, blocked sources, and warm-up over restarts.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { flushQueue, pauseQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { findGroups } from '../../src/store/sending/destination-groups.ts'
import { listQueues } from '../../src/store/sending/routes.ts'
import type { Acceptance, Api } from '../support/api.ts'
import { runCommand } from '../support/command.ts'
import { DnsServer } from '../support/dns-server.ts'
import { freePort } from '../support/free-port.ts'
import { makePlace, startNode, type TestCaller, untilStates, urlOf } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const [one, two] = ['127.0.0.71', '127.0.0.72']
const tomorrow = new Date(Date.now() + dayMs).toISOString().slice(0, 10)

/** The pools, for these organizations. */
const file = (shop: string, starter: string) => `
[[pool]]
name = "shop"
organizations = ["${shop}"]
source = [
  { address = "${one}", ehlo = "shop1.test" },
  { address = "${two}", ehlo = "shop2.test" },
]

[[pool]]
name = "letters"
purposes = ["transactional"]
source = [{ address = "127.0.0.73", ehlo = "letters.test" }]

[[pool]]
name = "starter"
organizations = ["${starter}"]

[[pool.source]]
address = "127.0.0.74"
ehlo = "starter.test"
warm-up = { from = "${tomorrow}", per-day = [3, 6] }
`

const place = await makePlace({ after })
const port = await freePort()
const sink = await startSink(place, { host: '127.0.0.80', port })
const strict = await startSink(place, { host: '127.0.0.81', port })
const zone = (name: string, { host }: { host: string }) => ({
  [name]: { MX: [[10, `mx.${name}`]] as [number, string][] },
  [`mx.${name}`]: { A: [host] },
})
const dns = await DnsServer.start({
  ...zone('far.test', sink),
  ...zone('blocking.test', sink),
  ...zone('paused.test', sink),
  ...zone('growing.test', sink),
  ...zone('strict.test', strict),
})
place.after(() => dns.close())
const deliveryFile = join(place.folder, 'delivery.toml')
const env = {
  POSTHORN_DELIVERY: 'direct',
  POSTHORN_DNS: dns.address,
  POSTHORN_MX_PORT: String(port),
  POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  POSTHORN_RETRY_LIFETIME: '30d',
}
// The file names organizations, so they are made before.
const early = await startNode(place, { env, roles: ['api'] })
const [shop, starter, other] = [
  await early.createCaller(),
  await early.createCaller(),
  await early.createCaller(),
]
await early.stop()
writeFileSync(deliveryFile, file(shop.organizationId, starter.organizationId))
const startPooled = () => startNode(place, { env: { ...env, POSTHORN_DELIVERY_FILE: deliveryFile } })
let node = await startPooled()

const inboxes = new Map<TestCaller, Promise<{ id: string }>>()

/** Sends one mail, and returns the id of its submission. */
async function submit(caller: TestCaller, to: string, purpose?: string): Promise<string> {
  const api: Api = node.meet(caller)
  const inbox = inboxes.get(caller) ?? api.createInbox()
  inboxes.set(caller, inbox)
  const body = { to: [{ email: to }], subject: 'Test', text: 'Hello.', ...(purpose && { purpose }) }
  const path = `/v1/inboxes/${(await inbox).id}/messages`
  const options = { method: 'POST', status: 202, idempotencyKey: randomUUID(), body } as const
  return (await api.want<Acceptance>(path, options)).submission.id
}

/** Runs a command of the deployment. Returns its output. */
async function posthorn(...words: string[]): Promise<string> {
  return (await command(...words)).stdout
}

async function command(...words: string[]) {
  const files = {
    POSTHORN_DELIVERY_FILE: deliveryFile,
    POSTHORN_SECRET_KEY_FILE: join(place.folder, 'secret-key'),
    POSTHORN_DATA_DIR: place.folder,
    POSTHORN_BLOB_URL: `file:${join(place.folder, 'blobs')}`,
  }
  const shared = { POSTHORN_DATABASE_URL: urlOf(place.connection), POSTHORN_MANAGED_DOMAIN: 'inbox.test' }
  return await runCommand(words, { ...env, ...files, ...shared }, place.folder)
}

const copiesTo = (domain: string) => sink.copies.filter(({ recipient }) => recipient.endsWith(`@${domain}`))
const groupOf = async (name: string) => (await findGroups(node.foundation.db, [name]))[0]

test('mail leaves from a source of its organization’s or purpose’s pool, and greets with its name', async () => {
  const sent: [TestCaller, string | undefined, RegExp][] = [
    [shop, undefined, /^127\.0\.0\.7[12] shop[12]\.test$/],
    // The organization's pool comes first.
    [shop, 'transactional', /^127\.0\.0\.7[12] shop[12]\.test$/],
    [other, 'transactional', /^127\.0\.0\.73 letters\.test$/],
    [other, undefined, /^127\.0\.0\.1 localhost$/],
  ]
  for (const [caller, purpose, seen] of sent) {
    const to = `${randomUUID()}@far.test`
    await untilStates(node.meet(caller), await submit(caller, to, purpose), 'delivered')
    const { peer, hello } = copiesTo('far.test').find(({ recipient }) => recipient === to)!
    assert.match(`${peer} ${hello}`, seen)
  }
})

test('a destination that blocks one source gets all mail from the other, and other destinations from both', async () => {
  sink.rule = async ({ stage, peer, command }) => {
    if (stage === 'message') await sleep(30)
    return stage === 'rcpt' && peer === one && command.includes('@blocking.test')
      ? `554 5.7.1 Service unavailable; Client host [${one}] blocked using bl.test`
      : null
  }
  const ids = await Promise.all(Array.from({ length: 40 }, (_, i) => submit(shop, `r${i}@blocking.test`)))
  for (const id of ids) await untilStates(node.meet(shop), id, 'delivered')
  assert.deepEqual(new Set(copiesTo('blocking.test').map(({ peer }) => peer)), new Set([two]))
  assert.equal(copiesTo('blocking.test').length, 40)
  const rest = await until('the rest to be stored', () => groupOf(`blocking.test from ${one}`))
  assert.equal(rest.reason, 'blocked: 554 5.7.1')
  assert.ok(rest.pausedUntil!.getTime() > node.foundation.clock.nowMs())
  await until('the provider of the queue', async () => {
    const [queue] = await listQueues(node.foundation.db, 'shop:blocking.test')
    return queue!.provider === 'blocking.test'
  })
  // A queue with a wish has no pool, so its flush ends no rest.
  const wished = 'requiretls:blocking.test'
  await node.foundation.db.writer.query(
    `insert into route (key, created_at, destination_group) values ($1, now(), 'blocking.test')`,
    [wished],
  )
  await flushQueue(node.foundation, wished)
  assert.ok((await groupOf(`blocking.test from ${one}`))?.pausedUntil)
  const shown = await posthorn('queue', 'show', 'shop:blocking.test')
  assert.match(
    shown,
    /^from shop 127\.0\.0\.71, shop1\.test; blocking\.test from 127\.0\.0\.71: .*blocked: 554 5\.7\.1$/m,
  )
  assert.match(shown, /^from shop 127\.0\.0\.72, shop2\.test$/m)
  const traced = await posthorn('queue', 'trace', 'you@blocking.test', '--org', shop.organizationId)
  assert.match(traced, /route +queue shop:blocking\.test, to the mail servers/)
  assert.match(traced, /127\.0\.0\.71, 127\.0\.0\.72/)
  assert.match(traced, /\nMail would be sent now\.\n/)
  await until('mail to another destination from both sources', async () => {
    await Promise.all(Array.from({ length: 20 }, () => submit(shop, `${randomUUID()}@far.test`)))
    const seen = new Set(copiesTo('far.test').map(({ peer }) => peer))
    return seen.has(one) && seen.has(two)
  })
})

test('a server that refuses a source at its banner gets the mail from the other at once', async () => {
  strict.rule = async ({ stage, peer }) => {
    if (stage === 'message') await sleep(30)
    return stage === 'banner' && peer === one ? '554 5.7.1 your IP is on our block list' : null
  }
  await until('the block', async () => {
    // Further connections open while the first one is busy, and each source gets some.
    const ids = await Promise.all(
      Array.from({ length: 20 }, () => submit(shop, `${randomUUID()}@strict.test`)),
    )
    for (const id of ids) await untilStates(node.meet(shop), id, 'delivered')
    return groupOf(`strict.test from ${one}`)
  })
  assert.deepEqual(new Set(strict.copies.map(({ peer }) => peer)), new Set([two]))
})

test('if every source is blocked, the mail waits without a failure until one is back, or until a flush', async () => {
  strict.rule = ({ stage }) => (stage === 'mail' ? '550 5.7.1 your IP is blocked by bl.test' : null)
  const { clock, db } = node.foundation
  const [id] = await Promise.all([submit(shop, 'first@strict.test'), submit(shop, 'second@strict.test')])
  const held = () =>
    until('the queue to be held', async () => {
      const [queue] = await listQueues(db, 'shop:strict.test')
      const group = await groupOf(`strict.test from ${two}`)
      const isHeld = queue!.notBefore !== null && queue!.notBefore.getTime() > clock.nowMs() + hourMs / 2
      return isHeld && queue!.owner === null && group?.pausedUntil ? queue : null
    })
  const queue = await held()
  assert.equal(queue.failures, 0)
  assert.equal(queue.waiting, 2)
  await until('the states', async () => {
    const { recipients } = await node
      .meet(shop)
      .want<{ recipients: { status: string }[] }>(`/v1/submissions/${id}`)
    return recipients.every(({ status }) => status === 'deferred' || status === 'pending')
  })
  const traced = await posthorn('queue', 'trace', 'you@strict.test', '--org', shop.organizationId)
  assert.match(
    traced,
    /\nMail would wait:\n(?:.*\n)* {2}strict\.test from 127\.0\.0\.72 waits until .*: blocked: 550 5\.7\.1\n/,
  )
  strict.rule = () => null
  assert.ok((await flushQueue(node.foundation, 'shop:strict.test')) > 0)
  await untilStates(node.meet(shop), id!, 'delivered')
  strict.rule = ({ stage }) =>
    stage === 'banner' || stage === 'mail' ? '554 5.7.1 your IP is on our block list' : null
  const later = await submit(shop, 'third@strict.test')
  await until('both to rest', async () => {
    const groups = await findGroups(
      db,
      [one, two].map((address) => `strict.test from ${address}`),
    )
    return (
      groups.filter(({ pausedUntil }) => pausedUntil && pausedUntil.getTime() > clock.nowMs()).length === 2
    )
  })
  strict.rule = () => null
  clock.advance(5 * hourMs)
  await untilStates(node.meet(shop), later, 'delivered')
})

test('a pause of a domain’s queue holds for its pools, whether their queues exist or not', async () => {
  const { foundation } = node
  await pauseQueue(foundation, 'paused.test', 'paused')
  const id = await submit(shop, 'someone@paused.test')
  const [queue] = await listQueues(foundation.db, 'shop:paused.test')
  assert.equal(queue!.paused, true)
  await pauseQueue(foundation, 'paused.test', 'running')
  await untilStates(node.meet(shop), id, 'delivered')
  await pauseQueue(foundation, 'paused.test', 'paused')
  assert.equal((await listQueues(foundation.db, 'shop:paused.test'))[0]!.paused, true)
})

test('warm-up holds mail over a restart, and sends more the next day', async () => {
  const key = 'starter:growing.test'
  await Promise.all(Array.from({ length: 8 }, (_, i) => submit(starter, `r${i}@growing.test`)))
  const held = () =>
    until('the queue to be held', async () => {
      const [queue] = await listQueues(node.foundation.db, key)
      const isHeld = queue!.notBefore !== null && queue!.notBefore > node.foundation.clock.now()
      return isHeld && queue!.owner === null && queue!.waiting === 5
    })
  await held()
  assert.equal(copiesTo('growing.test').length, 3)
  await until('the count to be stored', async () => {
    const sent = (await groupOf('source 127.0.0.74'))?.sent[dayMs] ?? []
    return sent.reduce((sum, [, count]) => sum + count, 0) === 3
  })
  const traced = await posthorn('queue', 'trace', 'you@growing.test', '--org', starter.organizationId)
  assert.match(traced, /127\.0\.0\.74, starter\.test; warm-up: 3 of 3 messages in 24 hours/)
  await node.stop()
  node = await startPooled()
  // A flush makes the mail due, but the plan still holds it.
  await flushQueue(node.foundation, key)
  await held()
  assert.equal(copiesTo('growing.test').length, 3)
  node.foundation.clock.advance(3 * dayMs)
  await until('the rest of the mail', () => copiesTo('growing.test').length === 8)
  for (const { peer, hello } of copiesTo('growing.test'))
    assert.deepEqual([peer, hello], ['127.0.0.74', 'starter.test'])
})

test('a pool without any address of this machine stops the start', async () => {
  await node.stop()
  writeFileSync(deliveryFile, file(randomUUID(), randomUUID()).replace('127.0.0.73', '192.0.2.77'))
  await assert.rejects(startPooled, /no source of the pool letters is an address of this machine/)
})

test('with a mistake in the file, queues can be paused and listed, and only commands that need it fail', async () => {
  writeFileSync(deliveryFile, 'connections = \n')
  assert.equal((await command('queue', 'pause', 'far.test')).status, 0)
  assert.match(await posthorn('queue', 'list'), /far\.test .* paused/)
  const traced = await command('queue', 'trace', 'you@far.test')
  assert.equal(traced.status, 1)
  assert.match(traced.stderr, /delivery\.toml:1: /)
  const examined = await command('doctor')
  assert.match(examined.stdout, /delivery\.toml:1: .*/)
  await assert.rejects(startPooled, /delivery\.toml:1: /)
})
