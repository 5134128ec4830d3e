// Fastify alone: a send route that only answers 202, or that answers once one row has committed.
import Fastify from 'fastify'
import pg from 'pg'
import { Batch } from '../../src/base/batch.ts'
import { newUuid } from '../../src/base/ids.ts'

interface Row {
  id: string
  body: string
}

/** Connection options for `pg`. Without them the route writes nothing. */
const connection = process.env['BENCH_DATABASE']
const keep = connection ? await startKeeping(JSON.parse(connection)) : async () => {}

const app = Fastify()
app.post<{ Params: { inboxId: string } }>('/v1/inboxes/:inboxId/messages', async (request, reply) => {
  const id = newUuid()
  await keep({ id, body: JSON.stringify(request.body) })
  reply.code(202)
  return { id, replayed: false }
})
await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${JSON.stringify(app.addresses()[0])}\n`)
process.once('SIGTERM', () => process.exit(0))

/** One table and one insert per batch: all rows that arrived while the last two inserts were in flight. */
async function startKeeping(options: pg.PoolConfig): Promise<(row: Row) => Promise<void>> {
  const pool = new pg.Pool({ ...options, max: 2 })
  await pool.query('create table if not exists fastify_send (id uuid primary key, body text not null)')
  const batch = new Batch<Row, void>({
    name: 'fastify',
    sizeOf: (row) => row.body.length,
    flush: async (rows) => {
      await pool.query({
        name: 'insert',
        text: 'insert into fastify_send (id, body) select * from unnest($1::uuid[], $2::text[])',
        values: [rows.map((row) => row.id), rows.map((row) => row.body)],
      })
      return rows.map(() => undefined)
    },
  })
  return (row) => batch.add(row)
}
