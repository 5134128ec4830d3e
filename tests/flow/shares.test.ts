// Each organization has a share of delivery: its silent hosts, slow mail and hanging connections do not delay others.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import type { Api, Inbox } from '../support/api.ts'
import { DnsServer } from '../support/dns-server.ts'
import { makePlace, send, startNode, type TestNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

/** One tenant of several. */
interface Tenant {
  api: Api
  inbox: Inbox
}

async function addTenant(node: TestNode): Promise<Tenant> {
  const { api } = await node.createCaller()
  return { api, inbox: await api.createInbox() }
}

/** Milliseconds from the request until the recipient is delivered. */
async function timeOf({ api, inbox }: Tenant, to: string): Promise<number> {
  const startMs = performance.now()
  const { submission } = await send(api, inbox, [to])
  await untilStates(api, submission.id, 'delivered')
  return performance.now() - startMs
}

/** The median of three sends, one after the other. */
async function usualTimeOf(tenant: Tenant, to: (n: number) => string): Promise<number> {
  const timesMs: number[] = []
  for (const n of [0, 1, 2]) timesMs.push(await timeOf(tenant, to(n)))
  return timesMs.toSorted((one, other) => one - other)[1]!
}

interface Tarpit {
  port: number
  open: number
  /** Closes its connections, and every later one at once. */
  release(): void
}

/** Accepts connections and sends nothing. */
async function startTarpit(t: TestContext, host: string): Promise<Tarpit> {
  const sockets = new Set<Socket>()
  let isReleased = false
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.on('close', () => sockets.delete(socket))
    if (isReleased) socket.destroy()
  })
  server.listen(0, host)
  await once(server, 'listening')
  const release = () => {
    isReleased = true
    for (const socket of sockets) socket.destroy()
  }
  t.after(() => {
    release()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    get open() {
      return sockets.size
    },
    release,
  }
}

test('hostile 1: one organization’s 600 silent destinations delay no one, here or at another node', async (t) => {
  const tarpit = await startTarpit(t, '127.0.0.5')
  const sink = await startSink(t, { host: '127.0.0.6', port: tarpit.port })
  const healthy = ['before', 'during', 'both'].flatMap((name) => [0, 1, 2].map((n) => `${name}${n}`))
  const names = Array.from({ length: 600 }, (_, i) => `t${i}.evil.test`)
  const dns = await DnsServer.start({
    // Each at a provider of its own, as one provider gets few connections.
    ...Object.fromEntries(
      names.map((name, i) => [name, { MX: [[10, `mx.tar${i}.test`]] as [number, string][] }]),
    ),
    ...Object.fromEntries(names.map((_, i) => [`mx.tar${i}.test`, { A: ['127.0.0.5'] }])),
    ...Object.fromEntries(healthy.map((name) => [`${name}.test`, { A: [sink.host] }])),
  })
  t.after(() => dns.close())
  const node = await startNode(await makePlace(t), {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(sink.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const [evil, good] = [await addTenant(node), await addTenant(node)]
  const before = {
    local: await usualTimeOf(good, () => good.inbox.address),
    far: await usualTimeOf(good, (n) => `someone@before${n}.test`),
  }

  const recipients = names.map((name) => `someone@${name}`)
  await send(evil.api, evil.inbox, recipients.slice(0, 300))
  await send(evil.api, evil.inbox, recipients.slice(300))
  await until('its share to be taken', () => tarpit.open >= 45)
  // Older than the mail that the other organization is about to send there.
  const shared = [0, 1, 2].map((n) => `first@both${n}.test`)
  const { submission } = await send(evil.api, evil.inbox, shared)
  const during = {
    local: await usualTimeOf(good, () => good.inbox.address),
    far: await usualTimeOf(good, (n) => `someone@during${n}.test`),
    shared: await usualTimeOf(good, (n) => `second@both${n}.test`),
  }
  t.diagnostic(JSON.stringify({ before, during, held: tarpit.open }))
  assert.ok(during.local - before.local < 1_000, `local: ${during.local} ms`)
  assert.ok(during.far - before.far < 1_000, `another domain: ${during.far} ms`)
  assert.ok(during.shared - before.far < 1_000, `a domain where it has mail too: ${during.shared} ms`)
  assert.ok(tarpit.open <= 50, `${tarpit.open} connections`)
  // The organization that fills the slots waits only for its own mail.
  await untilStates(evil.api, submission.id, ...shared.map(() => 'delivered'))
  tarpit.release()
  await until('the rest to be tried as places come free', async () => {
    const [row] = await node.foundation.db.query<{ count: number }>(
      `select count(*) from route where key like '%.evil.test' and failures > 0`,
    )
    return row!.count === names.length
  })
})

const deadDomains = Array.from({ length: 50 }, (_, n) => `d${n}.dead.test`)
/** For three cancelled sends, 50 domains each. */
const cancelledDomains = Array.from({ length: 150 }, (_, n) => `c${n}.dead.test`)
const deadNamesOf = (domain: string) => Array.from({ length: 100 }, (_, n) => `mx${n}.${domain}`)

/** Domains with 100 mail servers each, whose addresses never answer, and healthy ones at `address`. */
async function startDeadDns(t: TestContext, healthy: readonly string[], address: string): Promise<DnsServer> {
  const dns = await DnsServer.start(
    Object.fromEntries([
      ...healthy.map((name) => [name, { A: [address] }] as const),
      ...[...deadDomains, ...cancelledDomains].map((name) => {
        const exchanges = deadNamesOf(name).map((host, n): [number, string] => [n, host])
        return [name, { MX: exchanges }] as const
      }),
    ]),
  )
  for (const host of [...deadDomains, ...cancelledDomains].flatMap(deadNamesOf)) dns.fail(host, 'silent')
  t.after(() => dns.close())
  return dns
}

/**
 * Sends to 50 more dead domains and cancels it, three times. The 50 look-ups that began at `fullSinceMs` or later keep their
 * slots for 30 s, so none of these begins before. See decisions/0055-lookups-of-cancelled-mail.md.
 */
async function sendAndCancel(
  [evil, good]: [Tenant, Tenant],
  dns: DnsServer,
  fullSinceMs: number,
): Promise<number> {
  const timesMs: number[] = []
  for (const n of [0, 1, 2]) {
    const recipients = cancelledDomains.slice(50 * n, 50 * n + 50).map((domain) => `someone@${domain}`)
    const { submission } = await send(evil.api, evil.inbox, recipients)
    timesMs.push(await usualTimeOf(good, (i) => `someone@cancelled${3 * n + i}.test`))
    await evil.api.want(`/v1/submissions/${submission.id}/cancel`, { method: 'POST' })
  }
  const begun = new Set(dns.asked.map(({ name }) => name).filter((name) => cancelledDomains.includes(name)))
  const most = 50 * Math.floor((performance.now() - fullSinceMs) / 30_000)
  assert.ok(begun.size <= most, `${begun.size} look-ups`)
  return timesMs.toSorted((one, other) => one - other)[1]!
}

/** Milliseconds until the address has a verdict, and the verdict. */
async function judge({ api }: Tenant, email: string): Promise<{ verdict: string; tookMs: number }> {
  const startMs = performance.now()
  const asked = { method: 'POST', body: { email } } as const
  const { verdict } = await api.want<{ verdict: string }>('/v1/validate', asked)
  return { verdict, tookMs: performance.now() - startMs }
}

// A node of its own, for its DNS: the other node's DNS has many hosts that answer.
test('hostile 1, 21: 50 domains with 100 dead mail servers each delay no mail or validation of others', async (t) => {
  const sink = await startSink(t, { host: '127.0.0.6' })
  const names = ['before', 'during', 'shared'].flatMap((name) => [0, 1, 2].map((n) => `${name}${n}.test`))
  for (let n = 0; n < 9; n++) names.push(`cancelled${n}.test`)
  const judged = ['quiet.test', 'busy.test']
  const dns = await startDeadDns(t, [...names, ...judged], sink.host)
  const node = await startNode(await makePlace(t), {
    env: {
      POSTHORN_DELIVERY: 'direct',
      POSTHORN_DNS: dns.address,
      POSTHORN_MX_PORT: String(sink.port),
      POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    },
  })
  const [evil, good] = [await addTenant(node), await addTenant(node)]
  const beforeMs = await usualTimeOf(good, (n) => `someone@before${n}.test`)
  const quiet = await judge(good, 'info@quiet.test')

  const fullSinceMs = performance.now()
  await send(
    evil.api,
    evil.inbox,
    deadDomains.map((domain) => `someone@${domain}`),
  )
  const queries = () => dns.asked.filter(({ name }) => name.startsWith('mx'))
  await until('its look-ups to be under way', () => queries().length >= 150)
  await send(
    evil.api,
    evil.inbox,
    [0, 1, 2].map((n) => `first@shared${n}.test`),
  )
  const during = {
    far: await usualTimeOf(good, (n) => `someone@during${n}.test`),
    shared: await usualTimeOf(good, (n) => `second@shared${n}.test`),
  }
  const emails = deadDomains.map((domain) => `someone@${domain}`)
  const bulk = evil.api.call('/v1/validate/bulk', { method: 'POST', body: { emails } })
  const busy = await judge(good, 'info@busy.test')
  await bulk
  const cancelled = await sendAndCancel([evil, good], dns, fullSinceMs)
  t.diagnostic(JSON.stringify({ beforeMs, during, cancelled, quiet, busy, queries: queries().length }))
  assert.ok(during.far - beforeMs < 1_000, `another domain: ${during.far} ms`)
  assert.ok(during.shared - beforeMs < 1_000, `a domain where it has mail too: ${during.shared} ms`)
  assert.ok(cancelled - beforeMs < 1_000, `while another sends and cancels: ${cancelled} ms`)
  assert.deepEqual([quiet.verdict, busy.verdict], ['risky', 'risky'])
  assert.ok(busy.tookMs - quiet.tookMs < 1_000, `validation: ${busy.tookMs} ms`)
})

/** A node that sends everything through one smarthost, which answers as the test says. */
const relayedPlace = await makePlace({ after })
const smarthost = await startSink(relayedPlace)
const relayed = await startNode(relayedPlace, {
  env: { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: smarthost.url },
})

const sendMany = ({ api, inbox }: Tenant, count: number, domain: string) =>
  Promise.all(Array.from({ length: count }, (_, i) => send(api, inbox, [`r${i}@${domain}`])))

test('hostile 1: four hanging first messages leave the free connections to 97 others', async () => {
  const hanging = Promise.withResolvers<string | null>()
  let hung = 0
  smarthost.rule = ({ stage }) => (stage === 'text' && ++hung <= 4 ? hanging.promise : null)
  const tenant = await addTenant(relayed)
  const sent = await sendMany(tenant, 101, 'far.test')
  await until('the others to arrive', () => smarthost.copies.length >= 97)
  assert.equal(smarthost.copies.length, 97)
  hanging.resolve(null)
  for (const { submission } of sent) await untilStates(tenant.api, submission.id, 'delivered')
  assert.equal(smarthost.copies.length, 101)
})

test('hostile 1: one organization’s 300 slow mails to a smarthost do not delay another’s single mail', async (t) => {
  const slow = Promise.withResolvers<string | null>()
  let [taken, most] = [0, 0]
  smarthost.rule = async ({ stage, recipients }) => {
    if (stage !== 'message' || !recipients[0]!.endsWith('@slow.test')) return null
    most = Math.max(most, ++taken)
    await slow.promise
    taken--
    return null
  }
  const [heavy, light, other] = [await addTenant(relayed), await addTenant(relayed), await addTenant(relayed)]
  const beforeMs = await timeOf(light, 'before@quick.test')
  await sendMany(heavy, 300, 'slow.test')
  await until('its share of the connections to be taken', () => taken >= 15)
  const tookMs = [await timeOf(light, 'a@quick.test'), await timeOf(other, 'b@quick.test')]
  t.diagnostic(
    `before ${Math.round(beforeMs)} ms, beside the slow ones ${tookMs.map(Math.round).join(', ')} ms`,
  )
  assert.ok(Math.max(...tookMs) - beforeMs < 1_000, `delayed: ${tookMs} ms`)
  assert.equal(most, 15)
  slow.resolve(null)
})
