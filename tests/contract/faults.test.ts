// Proofs for every operation that an internal fault is a 500 and an unreachable database a 503, and that both end.
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { errorTable } from '../../src/http/errors.ts'
import { Db, type DbFault } from '../../src/postgres/db.ts'
import { Door } from '../support/door.ts'
import { startNode } from '../support/node.ts'
import { until } from '../support/until.ts'
import { type Answer, ask, type Request } from './ask.ts'
import type { Operation } from './document.ts'
import { acquire, soundRequest } from './sound.ts'
import { makeSurroundings, meetNode } from './world.ts'

const { env, ...surroundings } = await makeSurroundings({ after })
const { place } = surroundings
const owner = await startNode(place, { env })
const world = { ...surroundings, ...(await meetNode(place, owner)) }
const acquiring = await world.createCaller()
const property = await acquire(world, acquiring)
await owner.stop()

const door = new Door(place)
await door.open()
place.after(() => door.shut())
const node = await startNode(place, {
  env: { ...env, POSTHORN_DATABASE_URL: door.url },
  roles: ['api', 'dashboard'],
})
const { base, document, prove, meet } = await meetNode(place, node)
const caller = meet(acquiring)
/** A second connection to the database, which bypasses the door. */
const db = new Db({ connection: place.connection })
place.after(() => db.close())

const sound = (operation: Operation): Promise<Request> => soundRequest(operation, caller, property)

/**
 * Makes the node read the key again, in a minute that does not end soon. The node then caches the key for 1 s, and some
 * of its requests for this minute. So the next request fails in the operation, not before.
 */
async function remember(): Promise<void> {
  const { clock } = node.foundation
  const minuteLeftMs = 60_000 - (clock.nowMs() % 60_000)
  clock.advance(minuteLeftMs < 5_000 ? minuteLeftMs : 1_000)
  await ask(base, { method: 'GET', path: '/v1/me', secret: caller.secret })
}

/** Repeats the request until the answer is not a 5xx, then checks it. */
async function again({ success }: Operation, request: Request): Promise<void> {
  const answer = await until('the service to go on', async () => {
    const answer = await ask(base, request)
    return answer.status < 500 ? answer : null
  })
  assert.equal(answer.status, success.status, answer.bytes.toString())
  if (answer.body && 'replayed' in answer.body) assert.equal(answer.body['replayed'], false)
}

const lockNotAvailable = '55P03'
/** The tables that identify a caller. The profile needs no others. */
const callers = ['api_key', 'organization', 'request_window']

async function rename(operation: Operation, from: string, to: string): Promise<void> {
  const kept = operation.id === 'getProfile' ? [] : callers
  const rows = await db.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public' and tablename like $1 || '%'
      and substr(tablename, length($1) + 1) <> all($2)`,
    [from, kept],
  )
  const tables = rows.map(({ name }) => name).join(', ')
  const moves = rows.map(({ name }) => `alter table ${name} rename to ${to}${name.slice(from.length)};`)
  // All locks at once: to wait for one while it holds others could be a deadlock with a transaction of the node.
  const work = `do $$ begin lock table ${tables} in access exclusive mode nowait; ${moves.join(' ')} end $$`
  await until('no transaction has a table', async () => {
    const failure = await db
      .query(work)
      .then(() => null)
      .catch((error: DbFault) => error)
    if (failure && failure.sqlState !== lockNotAvailable) throw failure
    return failure === null
  })
}

for (const operation of document.operations)
  prove(operation.name, 500, 'internal_error', 'the tables are gone, and come back', async () => {
    const request = await sound(operation)
    await remember()
    await rename(operation, '', 'gone_')
    let answer: Answer
    try {
      answer = await ask(base, request)
    } finally {
      await rename(operation, 'gone_', '')
    }
    assert.deepEqual(answer.body, { error: 'internal_error', message: errorTable.internal_error[1] })
    assert.ok(node.log().includes(answer.headers.get('x-request-id')!))
    await again(operation, request)
    return answer
  })

for (const operation of document.operations)
  prove(operation.name, 503, 'unavailable', 'the database is away, and comes back', async () => {
    const request = await sound(operation)
    await remember()
    await door.shut()
    let answer: Answer
    try {
      answer = await ask(base, request)
    } finally {
      await door.open()
    }
    // The answer has a rate only after the caller was admitted, so the operation missed the database.
    assert.ok(answer.headers.has('ratelimit'), 'the caller was not let in')
    await again(operation, request)
    return answer
  })
