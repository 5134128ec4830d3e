// Metrics: whether a thirty-day window is slower to read after ten million messages than after ten thousand.
import { readFileSync } from 'node:fs'
import type { Scope } from '../../tests/support/until.ts'
import { Endings, temporaryFolder } from '../children.ts'
import { sendByHttp } from '../load/http.ts'
import { call, loadOf, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import { openSession, shareDatabase } from '../peers/posthorn-store.ts'
import { enter, type Plan, runCase } from '../plan.ts'
import type { Sample } from '../rounds.ts'

const seed = readFileSync(new URL('metrics-seed.sql', import.meta.url), 'utf8')

export async function benchMetrics(scope: Scope, plan: Plan): Promise<void> {
  const [few, many] = plan.extent === 'quick' ? [1000, 100_000] : [10_000, 10_000_000]
  const entrants = []
  for (const messages of [many, few])
    entrants.push(await enter(`${messages.toLocaleString('en')} messages`, () => startStore(scope, messages)))
  await runCase(plan, 'metrics, one client', entrants, (posthorn) => () => measure(posthorn, plan))
}

async function measure(posthorn: Posthorn, plan: Plan): Promise<Sample> {
  const count = plan.extent === 'quick' ? 50 : 500
  const read = async (hours: number) => {
    const paths = [`/v1/metrics/delivery?hours=${hours}`]
    const load = { method: 'GET', paths, connections: 1, count, expectStatus: '200' } as const
    return (await sendByHttp({ ...loadOf(posthorn), ...load })).latencyMs
  }
  const [month, day] = [await read(720), await read(24)]
  return {
    '30 days p50, ms': month.p50,
    '30 days p95, ms': month.p95,
    '24 hours p50, ms': day.p50,
    '24 hours p95, ms': day.p95,
  }
}

/** Starts a service with the traces of this many messages. It only answers the API, so that no folding runs. */
async function startStore(scope: Scope, messages: number): Promise<Posthorn> {
  const folder = temporaryFolder(scope, 'metrics')
  const first = new Endings()
  scope.after(() => first.run())
  try {
    const again = await startPosthorn(first, { roles: 'api', dataFolder: folder })
    const { organization } = await call<{ organization: { id: string } }>(again, {
      method: 'GET',
      path: '/v1/me',
    })
    const session = await openSession(first, await shareDatabase(first, again.dataFolder))
    const values = { 'bench.messages': messages, 'bench.organization': organization.id }
    for (const [name, value] of Object.entries(values))
      await session.query('select set_config($1, $2, false)', [name, `${value}`])
    await session.query(seed)
    await session.query('vacuum (analyze)')
    await first.run()
    const posthorn = await startPosthorn(scope, { roles: 'api', again })
    await verify(posthorn, messages)
    return posthorn
  } finally {
    await first.run()
  }
}

/** Throws unless the measured answer counts this many messages. */
async function verify(posthorn: Posthorn, messages: number): Promise<void> {
  const path = '/v1/metrics/delivery?hours=720'
  const { totals } = await call<{ totals: { accepted: number } }>(posthorn, { method: 'GET', path })
  if (Math.abs(totals.accepted / messages - 1) > 0.05)
    throw new Error(`the metrics tell of ${totals.accepted} messages of ${messages}`)
}
