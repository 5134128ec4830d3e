// A simulated provider with limits gets thousands of messages from a real node, while 200 other destinations get theirs.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { flushQueue } from '../../src/flow/delivering/end-deliveries.ts'
import { listQueues } from '../../src/store/sending/routes.ts'
import { DnsServer } from '../support/dns-server.ts'
import { freePort } from '../support/free-port.ts'
import { makePlace, send, startNode, type TestNode } from '../support/node.ts'
import { maxProviderConnections, SimulatedProvider } from '../support/simulated-provider.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'

const minuteMs = 60_000
const otherCount = 200
const file = `
[[group]]
name = "strict"
mx = ["mx.strict.test"]
connections = ${maxProviderConnections}
messages = ["100/1m", "1000/1h"]
`

interface Stage {
  sink: Sink
  others: Sink
  refused: string[]
  node: TestNode
  /** Starts another node. */
  addNode(): Promise<TestNode>
}

async function setStage(scope: Scope, deliveryFile: string | null): Promise<Stage> {
  const place = await makePlace(scope)
  const mxPort = await freePort()
  const others = await startSink(place, { host: '127.0.0.61', port: mxPort })
  const sink = await startSink(place, { host: '127.0.0.60', port: mxPort })
  const dns = await DnsServer.start({
    'strict.test': { MX: [[10, 'mx.strict.test']] },
    'mx.strict.test': { A: [sink.host] },
    'also.test': { MX: [[10, 'mx.strict.test']] },
    ...Object.fromEntries(
      Array.from({ length: otherCount }, (_, i) => [`far${i}.test`, { A: [others.host] }]),
    ),
  })
  place.after(() => dns.close())
  const named = join(place.folder, 'delivery.toml')
  if (deliveryFile !== null) writeFileSync(named, deliveryFile)
  const env = {
    POSTHORN_DELIVERY: 'direct',
    POSTHORN_DNS: dns.address,
    POSTHORN_MX_PORT: String(mxPort),
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    POSTHORN_RETRY_LIFETIME: '30d',
    ...(deliveryFile !== null && { POSTHORN_DELIVERY_FILE: named }),
  }
  const stage = {
    sink,
    others,
    refused: [] as string[],
    node: await startNode(place, { env }),
    addNode: () => startNode(place, { env }),
  } as Stage
  const provider = new SimulatedProvider()
  sink.rule = ({ stage: step }) => {
    if (step === 'banner')
      return sink.open > maxProviderConnections ? refuse('421 4.7.0 too many connections') : null
    if (step !== 'message') return null
    const refusal = provider.take(stage.node.foundation.clock.nowMs())
    return refusal === null ? null : refuse(refusal)
  }
  const refuse = (reply: string) => {
    stage.refused.push(reply)
    return reply
  }
  return stage
}

/** Moves the clock whenever the provider has got nothing for a while, until it has all messages. Returns the hours. */
async function deliverAll({ sink, node }: Stage, wanted: number): Promise<number> {
  const { clock } = node.foundation
  const beganMs = clock.nowMs()
  for (let turns = 0; sink.copies.length < wanted; turns++) {
    assert.ok(turns < 400, `${sink.copies.length} of ${wanted} came`)
    const before = sink.copies.length
    await sleep(2_500)
    if (sink.copies.length === before) clock.advance(20_000)
  }
  return (clock.nowMs() - beganMs) / (60 * minuteMs)
}

async function submit({ node }: Stage, to: readonly string[]): Promise<void> {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  for (let from = 0; from < to.length; from += 25)
    await Promise.all(to.slice(from, from + 25).map((address) => send(api, inbox, [address])))
}

const toProvider = (count: number) => Array.from({ length: count }, (_, i) => `r${i}@strict.test`)

test('a provider’s limits in delivery.toml are kept, and other destinations wait for none of its mail', async (t) => {
  const stage = await setStage(t, file)
  const { sink, others, refused, node } = stage
  await submit(stage, toProvider(300))
  await submit(
    stage,
    Array.from({ length: otherCount }, (_, i) => `someone@far${i}.test`),
  )
  // The clock has not moved, so the provider has got its first 100, and the queue is held.
  await until('the other destinations', () => others.copies.length === otherCount, { timeoutMs: 120_000 })
  assert.ok(sink.copies.length < 200, `${sink.copies.length} went to the provider`)
  const hours = await deliverAll(stage, 300)
  t.diagnostic(
    `300 in ${(hours * 60).toFixed(1)} min, ${sink.connections} connections, ${refused.length} refused`,
  )
  assert.deepEqual(refused, [])
  const [queue] = await listQueues(node.foundation.db, 'strict.test')
  assert.equal(queue!.group?.name, 'strict')
})

test('without a file, the limit of a provider is learned, visible, and kept by the next node', async (t) => {
  const stage = await setStage(t, null)
  const { sink, refused, node } = stage
  await submit(stage, toProvider(400))
  await until('a limit to be learned', async () => {
    const [queue] = await listQueues(node.foundation.db, 'strict.test')
    return queue?.group?.perMinute && queue.group.pausedUntil && queue.group.reason === '421 4.7.0'
  })
  await node.stop()
  stage.node = await stage.addNode()
  const [kept] = await listQueues(stage.node.foundation.db, 'strict.test')
  assert.equal(kept!.group?.reason, '421 4.7.0')
  await deliverAll(stage, 400)
  t.diagnostic(`${refused.length} of 400 refused, ${sink.connections} connections`)
  assert.ok(refused.length < 40, `${refused.length} refused`)
})

test('a flush ends the pause of a provider, and its mail goes at once', async (t) => {
  const paused = `${file}\n[[group.reply]]\nenhanced = "4.7.*"\npause = "1d"\n`
  const stage = await setStage(t, paused)
  const { sink, node } = stage
  const { db } = node.foundation
  const { rule } = sink
  sink.rule = ({ stage: step }) => (step === 'message' ? '450 4.7.28 unusual rate of mail' : null)
  await submit(stage, toProvider(20))
  await until('the pause to be stored', async () => {
    const [queue] = await listQueues(db, 'strict.test')
    return queue?.group?.pausedUntil && queue.owner === null && queue.notBefore
  })
  sink.rule = rule
  await flushQueue(node.foundation, 'strict.test')
  await until('the mail', () => sink.copies.length === 20)
})

test('two nodes divide the connections to a provider', async (t) => {
  const shared = `[[group]]\nname = "strict"\nmx = ["mx.strict.test"]\nconnections = 4\n`
  const stage = await setStage(t, shared)
  const { sink, node } = stage
  const other = await stage.addNode()
  let most = 0
  let isDivided = false
  sink.rule = async () => {
    if (isDivided) most = Math.max(most, sink.open)
    await sleep(100)
    return null
  }
  // A node acquires the queues of the mail that it accepts.
  const ended = Promise.all([
    submit(stage, toProvider(100)),
    submit(
      { ...stage, node: other },
      toProvider(100).map((address) => address.replace('strict', 'also')),
    ),
  ])
  const nodesOf = () =>
    node.foundation.db.query('select from destination_group_node where name = $1', ['strict'])
  await until('both nodes to send', async () => (await nodesOf()).length === 2, { timeoutMs: 60_000 })
  // Each node reads its part every 3 seconds.
  await until(
    'each node to keep to its part',
    async () => {
      const before = sink.copies.length
      await until('further mail', () => sink.copies.length >= before + 20, { timeoutMs: 60_000 })
      return sink.open <= 4
    },
    { timeoutMs: 60_000 },
  )
  isDivided = true
  await ended
  await until('all mail', () => sink.copies.length === 200, { timeoutMs: 120_000 })
  t.diagnostic(`at most ${most} connections`)
  assert.ok(most >= 1 && most <= 4, `${most} connections`)
})
