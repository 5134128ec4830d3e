// A torn page of the database, as the service sees it: statements that name a certain row fail with its SQLSTATE.
import type { TestContext } from 'node:test'
import { type Db, DbFault, type Queryable, type Tx } from '../../src/postgres/db.ts'

const cause = Object.assign(new Error('could not read blocks 0..0: read only 0 of 8192 bytes'), {
  code: 'XX001',
})

/** From now on, statements with this text fail if they name the row. Returns a function that ends that. */
export function tearRow(t: TestContext, db: Db, text: string, id: string): () => void {
  const tear = ({ query }: Queryable): Queryable['query'] => {
    return async (sql, values = []) => {
      if (sql.includes(text) && values.some((value) => isNamed(value, id))) throw new DbFault(cause)
      return await query(sql, values)
    }
  }
  const transaction = db.transaction.bind(db)
  const mocks = [
    t.mock.method(db, 'query', tear({ query: db.query.bind(db) })),
    t.mock.method(db, 'transaction', (work: (tx: Tx) => Promise<unknown>) =>
      transaction((tx) => work({ query: tear({ query: tx.query.bind(tx) }) } as Tx)),
    ),
  ]
  return () => mocks.forEach(({ mock }) => void mock.restore())
}

/** The parameter is an array of ids, or a binary one of type `uuid[]`. */
function isNamed(value: unknown, id: string): boolean {
  if (Buffer.isBuffer(value)) return value.includes(Buffer.from(id.replaceAll('-', ''), 'hex'))
  return [value].flat().includes(id)
}
