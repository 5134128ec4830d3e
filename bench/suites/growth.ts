// Growth: whether reading and accepting become slower with a thousand times as many stored messages.
import { readFileSync } from 'node:fs'
import { type Scope, until } from '../../tests/support/until.ts'
import { Endings, temporaryFolder } from '../children.ts'
import { perSecond, saveSends, sendBody, sendByHttp } from '../load/http.ts'
import type { SavedPool } from '../load/pool.ts'
import { recipient, saveMails, sendBySmtp, startSink } from '../load/smtp.ts'
import { writeUnsigned } from '../load/verified-mail.ts'
import { call, createInbox, loadOf, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import { openSession, shareDatabase } from '../peers/posthorn-store.ts'
import { enter, type Plan, runCase } from '../plan.ts'
import type { Sample } from '../rounds.ts'

interface Store {
  posthorn: Posthorn
  inboxId: string
  threadIds: string[]
  bodies: SavedPool
}

const seed = readFileSync(new URL('growth-seed.sql', import.meta.url), 'utf8')
/** Short, so that seeding ten million messages takes minutes. */
const textBytes = 250
/** Divisible by four, because the messages of a thread are seeded together. */
const seedChunk = 100_000

export async function benchGrowth(scope: Scope, plan: Plan): Promise<void> {
  const [few, many] = plan.extent === 'quick' ? [1000, 10_000] : [10_000, 10_000_000]
  const entrants = []
  for (const messages of [many, few]) {
    const name = `${messages.toLocaleString('en')} messages`
    entrants.push(await enter(name, () => startStore(scope, messages)))
  }
  await runCase(plan, 'growth, one client (accepted/s: 32)', entrants, (store) => () => measure(store, plan))
}

async function measure({ posthorn, inboxId, threadIds, bodies }: Store, plan: Plan): Promise<Sample> {
  const count = plan.extent === 'quick' ? 100 : 2000
  const target = loadOf(posthorn)
  const read = { ...target, method: 'GET', connections: 1, count, expectStatus: '200' } as const
  const threads = await sendByHttp({ ...read, paths: threadIds.map((id) => `/v1/threads/${id}`) })
  const list = await sendByHttp({ ...read, paths: [`/v1/inboxes/${inboxId}/messages?limit=50`] })
  const path = `/v1/inboxes/${inboxId}/messages`
  const send = { ...target, method: 'POST', paths: [path], bodies, expectStatus: '202' } as const
  const single = await sendByHttp({ ...send, connections: 1, count })
  const many = await sendByHttp({ ...send, connections: 32, durationMs: plan.targetMs })
  return {
    'thread read p50, ms': threads.latencyMs.p50,
    'thread read p95, ms': threads.latencyMs.p95,
    'list p50, ms': list.latencyMs.p50,
    'list p95, ms': list.latencyMs.p95,
    'acceptance p50, ms': single.latencyMs.p50,
    'acceptance p95, ms': single.latencyMs.p95,
    'accepted/s': perSecond(many),
  }
}

/** Starts a service whose store holds `messages`. It only answers the API, so that no delivery disturbs the measurement. */
async function startStore(scope: Scope, messages: number): Promise<Store> {
  const folder = temporaryFolder(scope, 'growth')
  const first = new Endings()
  scope.after(() => first.run())
  try {
    const sink = await startSink(first, folder)
    const again = await startPosthorn(first, { onward: sink.port, dataFolder: folder })
    const inboxId = await makeTemplates(again, folder)
    const elsewhere = await createInbox(again, 'elsewhere')
    const session = await openSession(first, await shareDatabase(first, again.dataFolder))
    const set = async (values: Record<string, unknown>) => {
      for (const [name, value] of Object.entries(values))
        await session.query('select set_config($1, $2, false)', [name, `${value}`])
    }
    await set({ 'bench.messages': messages, 'bench.here': inboxId, 'bench.elsewhere': elsewhere })
    for (let first = 1; first <= messages; first += seedChunk) {
      await set({ 'bench.first': first, 'bench.last': Math.min(messages, first + seedChunk - 1) })
      await session.query(seed)
      if (messages > seedChunk)
        process.stderr.write(`\rseeding: ${(first - 1).toLocaleString('en')} messages`)
    }
    await session.query('vacuum (analyze)')
    const { rows } = await session.query(
      'select id from thread where inbox_id = $1 and message_count = 4 order by md5(id) limit 200',
      [inboxId],
    )
    await first.run()
    const posthorn = await startPosthorn(scope, { roles: 'api', again })
    const bodies = saveSends(folder, { recipient: 'u@far.test', textBytes })
    return { posthorn, inboxId, bodies, threadIds: rows.map(({ id }) => id) }
  } finally {
    await first.run()
  }
}

/** Receives one message and delivers one through the service itself. Returns their inbox. */
async function makeTemplates(posthorn: Posthorn, folder: string): Promise<string> {
  const inboxId = await createInbox(posthorn, 'u')
  const mail = writeUnsigned('unsigned.example')(recipient, 0, { textBytes, files: 'none' })
  await sendBySmtp({
    port: posthorn.smtpPort,
    ...saveMails(folder, [mail], [recipient]),
    count: 1,
    sessions: 1,
    connections: 'kept',
  })
  const path = `/v1/inboxes/${inboxId}/messages`
  await call(posthorn, {
    method: 'POST',
    path,
    body: sendBody({ recipient: 'u@far.test', textBytes }),
    key: 'bench-template',
  })
  await until('one message is filed and one delivered', async () => {
    const answer = await call<{ messages: { delivery: { status: string } }[] }>(posthorn, {
      method: 'GET',
      path,
    })
    const states = answer.messages.map(({ delivery }) => delivery.status)
    return states.includes('received') && states.includes('delivered')
  })
  return inboxId
}
