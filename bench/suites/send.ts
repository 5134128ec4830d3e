// Sending through a domain: the durable send against Fastify with one group-committed insert, and a replay against a send.
import { Api } from '../../tests/support/api.ts'
import { proveDomain } from '../../tests/support/customer-domain.ts'
import { DnsServer } from '../../tests/support/dns-server.ts'
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { type HttpLoad, perSecond, saveSends, sendByHttp } from '../load/http.ts'
import type { SavedPool } from '../load/pool.ts'
import { startFastify } from '../peers/fastify.ts'
import { loadOf, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import { shareDatabase } from '../peers/posthorn-store.ts'
import { type Entrant, enter, type Plan, runCase, withCost } from '../plan.ts'
import type { Sample } from '../rounds.ts'
import { programsIn } from '../usage.ts'

type Load = Pick<HttpLoad, 'url' | 'headers' | 'paths' | 'keys'>

interface Acceptor {
  load: Load
  pids(): number[]
}

const clients = 64
const domain = 'sender.test'
/** Replays ask for the results of this many sends, round robin. */
const replayed = 5_000

export async function benchSend(scope: Scope, plan: Plan): Promise<void> {
  const folder = temporaryFolder(scope, 'sends')
  const posthorn = await startSender(scope)
  const fastify = await enter('Fastify + one insert', () => startPeer(scope))
  for (const textBytes of plan.extent === 'quick' ? [1000] : [1000, 5000]) {
    const from = `robot@${domain}`
    const bodies = saveSends(folder, { recipient: 'u@far.test', textBytes, from })
    const keys = { prefix: `again-${textBytes}-`, count: plan.extent === 'quick' ? 100 : replayed }
    await sendByHttp({ ...post({ ...posthorn.load, keys }, bodies), connections: 8, count: keys.count })
    const entrants: Entrant<Acceptor>[] = [
      { name: 'Posthorn', peer: posthorn },
      fastify,
      { name: 'Posthorn, replays', peer: { ...posthorn, load: { ...posthorn.load, keys } } },
    ]
    const title = `send through a domain, ${textBytes / 1000} KB of text, ${clients} clients`
    const rates: number[] = []
    await runCase(plan, title, entrants, (acceptor, name) => async () => {
      const sample = await measureTop(acceptor, bodies, plan.targetMs)
      if (name === 'Posthorn') rates.push(sample['accepted/s']!)
      return sample
    })
    const half = rates.toSorted((a, b) => a - b)[rates.length >> 1]! / 2
    await runCase(
      plan,
      `the same at ${Math.round(half)} a second`,
      entrants.slice(0, 2),
      (acceptor) => () => {
        return measurePaced(acceptor, bodies, plan.targetMs, half)
      },
    )
  }
}

async function measureTop(acceptor: Acceptor, bodies: SavedPool, durationMs: number): Promise<Sample> {
  const take = async () => {
    const result = await sendByHttp({ ...post(acceptor.load, bodies), connections: clients, durationMs })
    return { messages: result.answered, result }
  }
  const { result, cpuUs } = await withCost(acceptor, take)
  return {
    'CPU µs/message': cpuUs,
    'accepted/s': perSecond(result),
    'latency p50, ms': result.latencyMs.p50,
    'latency p99, ms': result.latencyMs.p99,
  }
}

async function measurePaced(
  { load }: Acceptor,
  bodies: SavedPool,
  durationMs: number,
  rate: number,
): Promise<Sample> {
  const paced = { ...post(load, bodies), connections: clients, durationMs, perSecond: rate }
  const { latencyMs } = await sendByHttp(paced)
  return { 'latency p50, ms': latencyMs.p50, 'latency p99, ms': latencyMs.p99 }
}

function post(load: Load, bodies: SavedPool) {
  return { ...load, bodies, method: 'POST', expectStatus: '202' } as const
}

/** Starts a service that only answers the API and has a domain verified for sending. */
async function startSender(scope: Scope): Promise<Acceptor> {
  const dns = await DnsServer.start()
  scope.after(() => dns.close())
  const posthorn: Posthorn = await startPosthorn(scope, { roles: 'api', dns: dns.address })
  await proveDomain(new Api(() => posthorn.http, posthorn.key), dns, domain, ['outbound'])
  return {
    load: { ...loadOf(posthorn), paths: ['/v1/send'] },
    pids: () => [...posthorn.servicePids(), ...posthorn.databasePids()],
  }
}

async function startPeer(scope: Scope): Promise<Acceptor> {
  const folder = temporaryFolder(scope, 'send')
  const peer = await startFastify(scope, await shareDatabase(scope, folder))
  return {
    load: { url: peer.http, headers: {}, paths: ['/v1/inboxes/inb_000000000000000000000000/messages'] },
    pids: () => [...peer.pids(), ...programsIn(folder, 'postgres')],
  }
}
