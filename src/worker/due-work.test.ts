// The poll for due work: which loops it wakes, and that it survives an outage of the database.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { testDatabase } from '../../tests/support/postgres.ts'
import { until } from '../../tests/support/until.ts'
import { Clock } from '../base/clock.ts'
import { Db } from '../postgres/db.ts'
import { anyDue } from '../store/due.ts'
import { DueWork } from './due-work.ts'

async function startPolling(t: { after(end: () => Promise<void>): void }, conditions: string[]) {
  const db = new Db({ connection: await testDatabase(t) })
  t.after(() => db.close())
  await db.query('create table thing (due_at timestamptz)')
  const lines: { work?: string; msg: string }[] = []
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) })
  const clock = new Clock()
  const dueWork = new DueWork({ db, clock, log, managedDomain: 'inbox.test' })
  const wakes = conditions.map(() => 0)
  for (const [index, due] of conditions.entries()) dueWork.watch(due, () => void wakes[index]!++)
  dueWork.start()
  t.after(() => dueWork.stop())
  return { db, clock, lines, wakes }
}

const always = 'true'

test('due work: it wakes the loops whose conditions hold, and no others', async (t) => {
  const conditions = [
    always,
    'exists (select from thing)',
    anyDue('t.due_at', 'thing t'),
    `asked.managed_domain = 'b.test'`,
  ]
  const { db, clock, wakes } = await startPolling(t, conditions)
  await until('a poll', () => wakes[0]! > 0)
  assert.deepEqual(wakes.slice(1), [0, 0, 0])
  await db.query('insert into thing values ($1)', [new Date(clock.nowMs() + 3_600_000)])
  await until('the row', () => wakes[1]! > 1)
  assert.deepEqual(wakes.slice(2), [0, 0])
  clock.advance(3_600_000)
  await until('its time', () => wakes[2]! > 0)
  assert.equal(wakes[3], 0)
})

test('due work: more rows than it reads count as due', async (t) => {
  const { db, clock, wakes } = await startPolling(t, [always, anyDue('due_at', 'thing')])
  const later = new Date(clock.nowMs() + 3_600_000)
  await db.query('insert into thing select $1 from generate_series(1, 199)', [later])
  const before = wakes[0]!
  await until('another poll', () => wakes[0]! > before + 1)
  assert.equal(wakes[1], 0)
  await db.query('insert into thing values ($1)', [later])
  await until('the last row', () => wakes[1]! > 0)
})

test('due work: a condition that fails does not stop the work of the others', async (t) => {
  const { db, wakes } = await startPolling(t, [always, 'exists (select from thing)'])
  await db.query('alter table thing rename to gone')
  const before = wakes[0]!
  await until('further wakes', () => wakes[0]! > before + 1)
})

test('due work: an outage is logged once, and then it polls again', async (t) => {
  const { db, lines, wakes } = await startPolling(t, [always, 'exists (select from thing)'])
  await until('a poll', () => wakes[0]! > 0)
  // SQLSTATE 57P01 is what a server sends that shuts down.
  await db.query(`create function fail() returns boolean language plpgsql as
    $$ begin raise 'shutting down' using errcode = '57P01'; end $$`)
  await db.query('alter table thing rename to gone')
  await db.query('create view thing as select fail() as due_at where fail()')
  await until('the outage', () => lines.length > 0)
  const polled = wakes[0]!
  await db.query('drop view thing')
  await db.query('alter table gone rename to thing')
  await until('further polls', () => wakes[0]! > polled)
  assert.deepEqual(
    lines.map(({ work, msg }) => [work, msg]),
    [
      ['find due work', 'unavailable; further failures are counted'],
      ['find due work', 'available again'],
    ],
  )
})
