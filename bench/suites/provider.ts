// The cost of a provider with limits to all others: mail by MX to 200 destinations, while 10,000 messages wait for it.

import { maxProviderConnections, SimulatedProvider } from '../../tests/support/simulated-provider.ts'
import { startSink as startServer } from '../../tests/support/sink.ts'
import type { Scope } from '../../tests/support/until.ts'
import { temporaryFolder } from '../children.ts'
import { type FarWorld, startFarWorld } from '../load/far-world.ts'
import { saveMailSends, sendByHttp } from '../load/http.ts'
import { startSink } from '../load/smtp.ts'
import { createInbox, loadOf, type Posthorn } from '../peers/posthorn.ts'
import { relayByPosthorn, type Stage } from '../peers/relays.ts'
import { enter, type Plan, wantsCase } from '../plan.ts'
import { runShapes, type Shape } from './outbound.ts'

const destinations = 200
const mail = { textBytes: 5_000, files: 'none' } as const
const shape: Shape = {
  title: `beside a provider with limits, 5 KB, 50 clients, to ${destinations} other destinations by MX`,
  mail,
  clients: 50,
  destinations,
}

export async function benchProvider(scope: Scope, plan: Plan): Promise<void> {
  if (!wantsCase(plan, shape.title)) return
  if (process.getuid?.() !== 0) return plan.print('provider: missing: only root can have port 25\n')
  const folder = temporaryFolder(scope, 'provider')
  const far = await startFarWorld(scope, destinations)
  const stage: Stage = { folder, onward: 'mx', dns: far.dns, sink: far.sink, recipients: far.recipients }
  const waiting = plan.extent === 'quick' ? 200 : 10_000
  await startProvider(scope, far)
  const submit = (posthorn: Posthorn) => submitToProvider(posthorn, folder, far, waiting)
  const entrants = [
    await enter('Posthorn, 200 alone', () => relayByPosthorn(scope, stage)),
    await enter('Posthorn, a provider too', () => relayByPosthorn(scope, stage, submit)),
  ]
  await runShapes(plan, [shape], entrants, await startSink(scope, folder, far.sink))
}

/** Takes 20 connections, and 100 messages a minute up to 1,000 an hour. */
async function startProvider(scope: Scope, { other }: FarWorld): Promise<void> {
  const provider = new SimulatedProvider()
  const server = await startServer(scope, { host: other.host, port: 25 })
  server.rule = ({ stage }) => {
    if (stage === 'banner')
      return server.open > maxProviderConnections ? '421 4.7.0 too many connections' : null
    return stage === 'message' ? provider.take(Date.now()) : null
  }
}

async function submitToProvider(
  posthorn: Posthorn,
  folder: string,
  { other }: FarWorld,
  count: number,
): Promise<void> {
  const inboxId = await createInbox(posthorn, 'campaign')
  await sendByHttp({
    ...loadOf(posthorn),
    method: 'POST',
    paths: [`/v1/inboxes/${inboxId}/messages`],
    bodies: saveMailSends(folder, [other.recipient], mail),
    connections: shape.clients,
    count,
    expectStatus: '202',
  })
}
