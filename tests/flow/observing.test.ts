// What operators see: Prometheus on the private listener, and one message's life in the logs by its id.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { makePlace, send, startNode, untilStates } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const place = await makePlace({ after })
const sink = await startSink(place, { rule: ({ stage }) => (stage === 'rcpt' ? '450 4.2.1 not now' : null) })
const node = await startNode(place, { env: { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url } })

async function readMetrics(): Promise<{ type: string; lines: string[] }> {
  const { host, port } = node.app.listening.operator
  const response = await fetch(`http://${host}:${port}/metrics`)
  assert.equal(response.status, 200)
  const lines = (await response.text()).split('\n')
  return { type: response.headers.get('content-type')!, lines: lines.filter((line) => !line.startsWith('#')) }
}

function seriesValue(lines: string[], name: string): number {
  const line = lines.find((candidate) => candidate.startsWith(`${name} `))
  assert.ok(line, `there is ${name}`)
  return Number(line.split(' ')[1])
}

/** The parsed log lines that name the id. */
function linesOf(id: string): Record<string, unknown>[] {
  const lines = node.log().split('\n')
  return lines.filter((line) => line.includes(`"${id}"`)).map((line) => JSON.parse(line))
}

test('Prometheus: what waits, what was done, and how the database does, in few series', async () => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const before = seriesValue((await readMetrics()).lines, 'posthorn_sends_accepted_total')
  const sent = await Promise.all(Array.from({ length: 30 }, (_, i) => send(api, inbox, [`a@d${i}.test`])))
  for (const { submission } of sent) await untilStates(api, submission.id, 'deferred')
  // What was gathered is kept for some seconds.
  const { type, lines } = await until('the gauges to be gathered again', async () => {
    const seen = await readMetrics()
    const name = 'posthorn_queue_recipients{class="relay",when="later"}'
    return seriesValue(seen.lines, name) === 30 ? seen : null
  })
  assert.match(type, /^text\/plain/)
  assert.equal(seriesValue(lines, 'posthorn_sends_accepted_total') - before, 30)
  assert.equal(seriesValue(lines, 'posthorn_database_up'), 1)
  assert.ok(seriesValue(lines, 'posthorn_queue_oldest_seconds') > 0)
  assert.ok(seriesValue(lines, 'posthorn_attempts_total{class="relay",outcome="deferred"}') >= 30)
  assert.ok(seriesValue(lines, 'posthorn_database_connections{state="idle"}') >= 0)
  assert.ok(seriesValue(lines, 'nodejs_eventloop_lag_p99_seconds') >= 0)
  assert.ok(lines.length < 2000, `${lines.length} series`)
  assert.doesNotMatch(lines.join('\n'), /d1\.test/)
})

test('every series of the dashboard exists', async () => {
  const { host, port } = node.app.listening.operator
  const text = await (await fetch(`http://${host}:${port}/metrics`)).text()
  const known = new Set(text.match(/^# TYPE (\S+)/gm)?.map((line) => line.split(' ')[2]))
  const dashboard = readFileSync(new URL('../../deploy/grafana/posthorn.json', import.meta.url), 'utf8')
  const { panels } = JSON.parse(dashboard) as { panels: { targets?: { expr: string }[] }[] }
  const named = panels.flatMap(({ targets = [] }) =>
    targets.flatMap(({ expr }) => expr.match(/\b(?:posthorn|nodejs|process)_[a-z0-9_]+/g) ?? []),
  )
  assert.ok(named.length >= 15)
  const unknown = named.filter(
    (name) => !known.has(name) && !known.has(name.replace(/_(?:bucket|sum|count)$/, '')),
  )
  assert.deepEqual(unknown, [])
})

test("a message's life can be followed in the logs by its id", async () => {
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  const { message, submission } = await send(api, inbox, [inbox.address])
  await untilStates(api, submission.id, 'delivered')
  const [accepted] = linesOf(message.id)
  assert.equal(accepted?.['submission'], submission.id)
  const told = await until('the attempt to be logged', () => {
    const lines = linesOf(submission.id)
    return lines.length === 2 ? lines : null
  })
  assert.deepEqual(
    told.map(({ msg, queueId }) => [msg, queueId]),
    ['a send was accepted', 'a recipient was attempted'].map((msg) => [msg, accepted['queueId']]),
  )
  assert.equal(told[1]?.['status'], 'delivered')
  const arrived = await until('the mail to be filed', async () => {
    const found = (await api.exported(inbox.id)).find(({ direction }) => direction === 'inbound')
    const lines = found ? linesOf(found.id) : []
    return lines.length === 2 ? lines : null
  })
  assert.deepEqual(
    arrived.map(({ msg }) => msg),
    ['a mail was received', 'a mail was filed'],
  )
})
