// A node follows the primary of a cluster that POSTHORN_DATABASE_URL names by several hosts.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ExternalServer } from '../support/external-server.ts'
import { send, startNode } from '../support/node.ts'
import { startSink } from '../support/sink.ts'
import { until } from '../support/until.ts'

const anyHost = 'postgres://posthorn:horn@'

/** Two servers of its own, because one of them dies, and a node that knows both. */
async function setStage(t: TestContext) {
  const primary = await ExternalServer.make(t)
  const ports = [portOf(await primary.startOnTcp('wal_level=replica', 'fsync=on'))]
  const standby = await primary.makeStandby(t)
  ports.push(portOf(await standby.startOnTcp('hot_standby=on')))
  // The standby is named first: its place in the list means nothing.
  const hosts = ports.reverse().map((port) => `127.0.0.1:${port}`)
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-failover-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'secret-key'), randomBytes(32).toString('hex'), { mode: 0o600 })
  const sink = await startSink(t)
  const url = `${anyHost}${hosts}/postgres?target_session_attrs=read-write`
  const env = { POSTHORN_DATABASE_URL: url, POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: sink.url }
  const place = { connection: { connectionString: url }, folder, after: (end: () => void) => t.after(end) }
  const node = await startNode(place, { env })
  const { api } = await node.createCaller()
  const inbox = await api.createInbox()
  /** Sends until a message is accepted, and returns once it has arrived. */
  const sendOne = async () => {
    const before = sink.copies.length
    await until('a send to be accepted', () => send(api, inbox, ['someone@far.test']).catch(() => null))
    await until('the message to arrive', () => sink.copies.length > before)
  }
  return { primary, standby, node, sendOne }
}

const portOf = (url: string) => Number(new URL(url).port)

test('a node goes on at the new primary when the old one has died', async (t) => {
  const { primary, standby, sendOne } = await setStage(t)
  await sendOne()
  await caughtUp(primary, standby)
  await primary.stop()
  await standby.ask('select pg_promote()')
  const promotedMs = performance.now()
  await sendOne()
  t.diagnostic(`from the promotion to a delivered message: ${Math.round(performance.now() - promotedMs)} ms`)
})

test('a node leaves a frozen primary for the new one, and keeps no connection to the old one', async (t) => {
  const { primary, standby, node, sendOne } = await setStage(t)
  await sendOne()
  await caughtUp(primary, standby)
  primary.freeze()
  await standby.ask('select pg_promote()')
  const promotedMs = performance.now()
  await sendOne()
  t.diagnostic(`from the promotion to a delivered message: ${Math.round(performance.now() - promotedMs)} ms`)
  primary.thaw()
  await until('the old connections to be gone', async () => {
    const own = `select count(*) as count from pg_stat_activity where application_name = 'posthorn'`
    const [row] = await primary.ask(own)
    return Number(row!['count']) === 0
  })
  // Nobody demoted the old one, so it would take writes.
  const countOn = async (server: ExternalServer) => (await server.ask('select count(*) from submission'))[0]
  const before = await countOn(primary)
  await standby.stop()
  const faultOf = () => node.foundation.db.query('select 1').then(String, (error) => error.message)
  await until('the reason', async () => /no server takes writes: .*a former primary/.test(await faultOf()))
  assert.deepEqual(await countOn(primary), before)
})

/** Replication is asynchronous here, so a test waits until nothing would be lost. */
async function caughtUp(primary: ExternalServer, standby: ExternalServer): Promise<void> {
  const [at] = await primary.ask('select pg_current_wal_flush_lsn()::text as lsn')
  await until('the standby to catch up', async () => {
    const [row] = await standby.ask(`select pg_last_wal_replay_lsn() >= '${at!['lsn']}' as caught`)
    return row!['caught']
  })
}
