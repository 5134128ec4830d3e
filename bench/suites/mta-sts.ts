// The cost of MTA-STS once policies are known: the same mail by MX to domains with policies, and to domains without.
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { startFarWorld } from '../load/far-world.ts'
import { startSink } from '../load/smtp.ts'
import type { Posthorn } from '../peers/posthorn.ts'
import { openSession, shareDatabase } from '../peers/posthorn-store.ts'
import { relayByPosthorn, type Stage } from '../peers/relays.ts'
import { enter, type Plan, wantsCase } from '../plan.ts'
import { runShapes, type Shape } from './outbound.ts'

const destinations = 20
const shape: Shape = {
  title: `MTA-STS with known policies, 5 KB, 50 clients, to ${destinations} destinations by MX`,
  mail: { textBytes: 5_000, files: 'none' },
  clients: 50,
  destinations,
}

/** Policies as if they had been fetched a moment ago. The sink has no TLS, so they are in the mode `testing`. */
const policies = `insert into mta_sts_policy (domain, id, mode, mx, max_age, fetched_at, expires_at, used_at)
  select domain, '1', 'testing', array['mx.' || domain], 604800, now(), now() + interval '7 days', now()
  from unnest($1::text[]) as domain`

export async function benchMtaSts(scope: Scope, plan: Plan): Promise<void> {
  if (!wantsCase(plan, shape.title)) return
  if (process.getuid?.() !== 0) return plan.print('MTA-STS: missing: only root can have port 25\n')
  const folder = temporaryFolder(scope, 'mta-sts')
  const far = await startFarWorld(scope, destinations)
  const stage: Stage = { folder, onward: 'mx', dns: far.dns, sink: far.sink, recipients: far.recipients }
  const store = async (posthorn: Posthorn) => {
    const session = await openSession(scope, await shareDatabase(scope, posthorn.dataFolder))
    await session.query(policies, [far.recipients.map((address) => address.split('@')[1])])
  }
  const entrants = [
    await enter('Posthorn, no policies', () => relayByPosthorn(scope, stage)),
    await enter('Posthorn, MTA-STS', () => relayByPosthorn(scope, stage, store)),
  ]
  await runShapes(plan, [shape], entrants, await startSink(scope, folder, far.sink))
}
