// Acceptance: the send route without delivery, against Fastify with less behind it and PostgreSQL's own ceiling.
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { type HttpLoad, perSecond, saveSends, sendBody, sendByHttp } from '../load/http.ts'
import type { SavedPool } from '../load/pool.ts'
import { type FastifyPeer, startFastify } from '../peers/fastify.ts'
import { type Database, preparePgbench, runPgbench } from '../peers/pgbench.ts'
import { createInbox, loadOf, startPosthorn } from '../peers/posthorn.ts'
import { shareDatabase } from '../peers/posthorn-store.ts'
import { type Entrant, enter, type Plan, runCase, withCost } from '../plan.ts'
import type { Sample } from '../rounds.ts'
import { programsIn } from '../usage.ts'

interface Acceptor {
  pids(): number[]
  /** Accepts sends for about `durationMs`. `messages` is the number accepted. */
  take(sends: Sends, durationMs: number): Promise<{ messages: number; figures: Sample }>
}

interface Sends {
  bodies: SavedPool
  /** One body of this size. */
  body: string
}

const clients = 64

export async function benchAccept(scope: Scope, plan: Plan): Promise<void> {
  const folder = temporaryFolder(scope, 'accept')
  const database = await enter('PostgreSQL', () => shareDatabase(scope, folder))
  const databasePids = () => programsIn(folder, 'postgres')
  const needDatabase = () => {
    if ('peer' in database) return database.peer
    throw new Error(`missing: its PostgreSQL does not start: ${database.absence}`)
  }
  const entrants: Entrant<Acceptor>[] = [
    await enter('Posthorn', () => acceptByPosthorn(scope)),
    await enter('Fastify + one insert', async () =>
      acceptByFastify(await startFastify(scope, needDatabase()), databasePids),
    ),
    await enter('Fastify bare', async () => acceptByFastify(await startFastify(scope), () => [])),
    await enter('pgbench', async () => acceptByPgbench(needDatabase(), folder, databasePids)),
  ]
  for (const textBytes of plan.extent === 'quick' ? [1000] : [1000, 5000]) {
    const send = { recipient: 'u@far.test', textBytes }
    const sends = { bodies: saveSends(folder, send), body: sendBody(send) }
    const title = `accept, ${textBytes / 1000} KB of text, ${clients} clients`
    await runCase(plan, title, entrants, (acceptor) => () => measure(acceptor, sends, plan.targetMs))
  }
}

async function measure(acceptor: Acceptor, sends: Sends, durationMs: number): Promise<Sample> {
  const { cpuUs, figures } = await withCost(acceptor, () => acceptor.take(sends, durationMs))
  return { 'CPU µs/message': cpuUs, ...figures }
}

async function acceptByPosthorn(scope: Scope): Promise<Acceptor> {
  const posthorn = await startPosthorn(scope, { roles: 'api' })
  const inboxId = await createInbox(posthorn, 'sender')
  return {
    pids: () => [...posthorn.servicePids(), ...posthorn.databasePids()],
    take: takeByHttp({ ...loadOf(posthorn), paths: [`/v1/inboxes/${inboxId}/messages`] }),
  }
}

function acceptByFastify(fastify: FastifyPeer, databasePids: () => number[]): Acceptor {
  return {
    pids: () => [...fastify.pids(), ...databasePids()],
    take: takeByHttp({
      url: fastify.http,
      headers: {},
      paths: ['/v1/inboxes/inb_000000000000000000000000/messages'],
    }),
  }
}

async function acceptByPgbench(
  database: Database,
  folder: string,
  databasePids: () => number[],
): Promise<Acceptor> {
  await preparePgbench(database)
  return {
    pids: databasePids,
    take: async ({ body }, durationMs) => {
      const { transactions, perSecond } = await runPgbench(database, { folder, body, clients, durationMs })
      return { messages: transactions, figures: { 'accepted/s': perSecond } }
    },
  }
}

function takeByHttp(target: Pick<HttpLoad, 'url' | 'headers' | 'paths'>): Acceptor['take'] {
  return async ({ bodies }, durationMs) => {
    const load = { ...target, bodies, durationMs, connections: clients, expectStatus: '202' }
    const result = await sendByHttp({ ...load, method: 'POST' })
    const figures = {
      'accepted/s': perSecond(result),
      'latency p50, ms': result.latencyMs.p50,
      'latency p99, ms': result.latencyMs.p99,
    }
    return { messages: result.answered, figures }
  }
}
