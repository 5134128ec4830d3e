// Attacks on delivery: destinations that are silent or slow, by one tenant with all that its limits allow.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createCaller, startPosthorn } from '../support/service.ts'
import { startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { type Attack, inMs, measureDelivery, mx, type Outcome, send, setStage, timeUntil } from './attack.ts'

const domains = 600
const silence = '127.0.0.2'

/** Accepts connections and sends nothing. */
async function startTarpit(scope: Scope, port: number): Promise<{ open: () => number }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
  })
  server.listen({ host: silence, port, backlog: 2000 })
  await once(server, 'listening')
  scope.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { open: () => sockets.size }
}

async function silentDestinations(scope: Scope): Promise<Outcome> {
  const stage = await setStage(scope)
  const { dns, attacker, healthy } = stage
  const tarpit = await startTarpit(scope, healthy.port)
  dns.set('mx.silent.test', { A: [silence] })
  for (let n = 0; n < domains; n++) dns.set(`t${n}.silent.test`, mx('mx.silent.test'))
  const inbox = await attacker.createInbox()
  for (let first = 0; first < domains; first += 50) {
    const to = Array.from({ length: 50 }, (_, n) => `x@t${first + n}.silent.test`)
    await send(attacker, inbox, to)
  }
  await until('the silent destinations to be tried', () => tarpit.open() >= 40, { timeoutMs: 60_000 })
  await timeUntil(() => tarpit.open() >= domains - 100, 5_000)
  const held = tarpit.open()
  const { localMs, healthyMs } = await measureDelivery(stage)
  const isQuick = (ms: number | null) => ms !== null && ms < 1000
  return {
    now: `${held} connections held; local ${inMs(localMs)}, healthy ${inMs(healthyMs)}`,
    held: isQuick(localMs) && isQuick(healthyMs),
  }
}

async function slowSmarthost(scope: Scope): Promise<Outcome> {
  const relay = await startSink(scope)
  const isSlow = (recipients: readonly string[]) =>
    recipients.some((address) => address.endsWith('@slow.test'))
  relay.rule = async ({ stage, recipients }) => {
    if (stage === 'message' && isSlow(recipients))
      await new Promise((resolve) => setTimeout(resolve, 10_000).unref())
    return null
  }
  const posthorn = await startPosthorn(scope, {
    env: { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: relay.url },
  })
  const [{ api: attacker }, { api: victim }] = [await createCaller(posthorn), await createCaller(posthorn)]
  const inbox = await attacker.createInbox()
  for (let n = 0; n < 300; n++) await send(attacker, inbox, [`r${n}@slow.test`])
  await until('the slow mails to be on their way', () => relay.open > 5)
  await timeUntil(() => relay.open >= 20, 3_000)
  const { message } = await send(victim, await victim.createInbox(), ['one@quick.test'])
  const tookMs = await timeUntil(() => relay.copiesOf(message.internetMessageId)[0])
  return { now: `the other's mail ${inMs(tookMs)}`, held: tookMs !== null && tookMs < 1000 }
}

async function hangingFirst(scope: Scope): Promise<Outcome> {
  const { attacker, healthy } = await setStage(scope)
  healthy.rule = ({ stage, recipients }) =>
    stage === 'message' && recipients.some((address) => address.startsWith('hang'))
      ? new Promise(() => {})
      : null
  const inbox = await attacker.createInbox()
  for (let n = 0; n < 4; n++) await send(attacker, inbox, [`hang${n}@healthy.test`])
  await until('the first to hang', () => healthy.open >= 2)
  await Promise.all(Array.from({ length: 97 }, (_, n) => send(attacker, inbox, [`r${n}@healthy.test`])))
  const tookMs = await timeUntil(() => healthy.copies.length >= 97)
  return {
    now: `${healthy.copies.length} of 97 sent, ${inMs(tookMs)}`,
    held: tookMs !== null && tookMs < 5000,
  }
}

async function suspended(scope: Scope): Promise<Outcome> {
  const { posthorn, healthy } = await setStage(scope)
  const { api, organizationId } = await createCaller(posthorn)
  // The queue exists once mail has gone there.
  const inbox = await api.createInbox()
  await send(api, inbox, ['first@healthy.test'])
  await until('the first to arrive', () => healthy.copies.length === 1)
  await posthorn.cli(['queue', 'pause', 'healthy.test'])
  for (let n = 0; n < 20; n++) await send(api, inbox, [`r${n}@healthy.test`])
  await posthorn.cli(['org', 'suspend', organizationId])
  await posthorn.cli(['queue', 'resume', 'healthy.test'])
  await timeUntil(() => healthy.copies.length === 21, 8_000)
  const sent = healthy.copies.length - 1
  await posthorn.cli(['org', 'approve', organizationId])
  const goesOn = await timeUntil(() => healthy.copies.length === 21)
  return {
    now: `${sent} of 20 sent while suspended; after the approval all of them, ${inMs(goesOn)}`,
    held: sent === 0 && goesOn !== null,
  }
}

export const deliveryAttacks: Attack[] = [
  {
    name: `${domains} silent destinations of one tenant; another writes to an inbox here and to a healthy domain`,
    before: '500 connections held; local and healthy not within 20 s (281 s elsewhere)',
    run: silentDestinations,
  },
  {
    name: 'a smarthost that takes 10 s for each of 300 mails of one tenant; another sends one',
    before: "the other's mail after 7 s",
    run: slowSmarthost,
  },
  {
    name: 'four messages that hang at a destination, 97 behind them',
    before: '0 of 97 sent within 20 s',
    run: hangingFirst,
  },
  {
    name: 'a spammer is suspended with 20 mails queued',
    before: '20 of 20 sent while suspended',
    run: suspended,
  },
]
