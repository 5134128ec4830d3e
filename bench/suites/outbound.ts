// Outbound: from the first message handed in to the last one at the sink; ours by HTTP and signed, theirs by SMTP.
import { startSink as startRecorder } from '../../tests/support/sink.ts'
import { type Scope, until } from '../../tests/support/until.ts'
import { Endings, freePort, temporaryFolder } from '../children.ts'
import { sendBody, sendByHttp } from '../load/http.ts'
import { type Sink, sendBySmtp, startSink } from '../load/smtp.ts'
import { startHaraka } from '../peers/haraka.ts'
import { startPostfix } from '../peers/postfix.ts'
import { call, createInbox, loadOf, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import { type Entrant, enter, type Plan, runCase, withCpu } from '../plan.ts'
import { LoadSize, type Sample } from '../rounds.ts'

interface Shape {
  sizeBytes: number
  /** HTTP clients, or SMTP sessions; all keep their connections. */
  clients: number
}

interface Relay {
  pids(): number[]
  /** Hands `messages` in; resolves with when the first was sent and the last accepted, milliseconds since the epoch. */
  handIn(messages: number, shape: Shape): Promise<{ startedAtMs: number; endedAtMs: number }>
  /** Resolves when nothing is queued any more. */
  settle(): Promise<void>
}

const farRecipient = 'u@far.test'

export async function benchOutbound(scope: Scope, plan: Plan): Promise<void> {
  const folder = temporaryFolder(scope, 'outbound')
  const port = await freePort()
  // First of all a recorder stands where the sink will: what leaves must be signed.
  const posthorn = await enter('Posthorn, RSA-signed', () => startSigned(scope, port))
  const sink = await startSink(scope, folder, port)
  const entrants: Entrant<Relay>[] = [
    posthorn,
    await enter('Postfix', () => relayByPostfix(scope, port)),
    await enter('Haraka', () => relayByHaraka(scope, port)),
  ]
  for (const shape of shapes(plan)) {
    const title = `outbound, ${shape.sizeBytes / 1000} KB, ${shape.clients} clients, from handing in to the sink`
    await runCase(plan, title, entrants, (relay) => {
      const size = new LoadSize({ first: 200, targetMs: plan.targetMs, max: 40_000 })
      return () => measure(relay, sink, shape, size)
    })
  }
}

async function measure(relay: Relay, sink: Sink, shape: Shape, size: LoadSize): Promise<Sample> {
  const messages = size.count
  const result = await withCpu(relay.pids, async () => {
    const before = sink.count()
    const { startedAtMs, endedAtMs } = await relay.handIn(messages, shape)
    const reachedAtMs = await sink.reach(before + messages)
    return { messages, acceptedMs: endedAtMs - startedAtMs, elapsedMs: reachedAtMs - startedAtMs }
  })
  await relay.settle()
  size.observe(result.elapsedMs)
  return {
    'at the sink/s': (messages / result.elapsedMs) * 1000,
    'accepted/s': (messages / result.acceptedMs) * 1000,
    'CPU µs/message': result.cpuUs,
  }
}

async function startSigned(scope: Scope, relayPort: number): Promise<Relay> {
  const posthorn = await startPosthorn(scope, { relayPort })
  const inboxId = await createInbox(posthorn, 'sender')
  await checkSignature(posthorn, inboxId, relayPort)
  return {
    pids: () => [...posthorn.servicePids(), ...posthorn.databasePids()],
    handIn: (messages, { clients, sizeBytes }) =>
      sendByHttp({
        ...loadOf(posthorn),
        method: 'POST',
        paths: [`/v1/inboxes/${inboxId}/messages`],
        body: sendBody(farRecipient, sizeBytes),
        connections: clients,
        requests: messages,
        expectStatus: '202',
      }),
    settle: async () => {},
  }
}

/** Throws unless the first message that leaves carries an RSA signature. */
async function checkSignature(posthorn: Posthorn, inboxId: string, port: number): Promise<void> {
  const scope = new Endings()
  try {
    const recorder = await startRecorder(scope, { port })
    const body = sendBody(farRecipient, 100)
    await call(posthorn, {
      method: 'POST',
      path: `/v1/inboxes/${inboxId}/messages`,
      body,
      key: 'bench-signature',
    })
    const copy = await until('a first message leaves', () => recorder.copies[0])
    const [header = ''] = copy.raw.toString('latin1').split('\r\n\r\n')
    if (!/^DKIM-Signature:[^:]*\ba=rsa-sha256\b/m.test(header))
      throw new Error('what leaves is not signed with RSA')
  } finally {
    await scope.run()
  }
}

async function relayByPostfix(scope: Scope, relayPort: number): Promise<Relay> {
  const postfix = await startPostfix(scope, { relayPort })
  return { pids: postfix.pids, handIn: handInBySmtp(postfix.port), settle: postfix.idle }
}

async function relayByHaraka(scope: Scope, relayPort: number): Promise<Relay> {
  const haraka = await startHaraka(scope, { relayPort })
  return { pids: haraka.pids, handIn: handInBySmtp(haraka.port), settle: haraka.idle }
}

function handInBySmtp(port: number): Relay['handIn'] {
  return async (messages, { clients, sizeBytes }) => {
    const startedAtMs = Date.now()
    await sendBySmtp({ port, messages, sizeBytes, sessions: clients, connections: 'kept' })
    return { startedAtMs, endedAtMs: Date.now() }
  }
}

function shapes(plan: Plan): Shape[] {
  if (plan.extent === 'quick') return [{ sizeBytes: 5000, clients: 10 }]
  return [10, 50].map((clients) => ({ sizeBytes: 5000, clients }))
}
