// Columns in binary form: PostgreSQL reads every value as it was written.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { testDatabase } from '../../tests/support/postgres.ts'
import { column, releaseBytes } from './columns.ts'
import { Db, DbFault } from './db.ts'

const db = new Db({ connection: await testDatabase({ after }), maxConnections: 1 })
after(() => db.close())

const nullable = <Value>(value: fc.Arbitrary<Value>) => fc.array(fc.option(value), { maxLength: 20 })
// Text that PostgreSQL cannot store is refused earlier, so no column contains it.
const text = fc
  .string({ unit: 'binary', maxLength: 300 })
  .map((drawn) => drawn.toWellFormed().replaceAll('\0', ''))
const time = fc.date({ min: new Date(0), max: new Date('2200-01-01'), noInvalidDate: true })
const members = fc.dictionary(text, fc.oneof(text, fc.boolean(), fc.integer()), {
  maxKeys: 4,
  noNullPrototype: true,
})

const cases = [
  ['uuid', fc.uuid()],
  ['text', text],
  ['integer', fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })],
  ['bigint', fc.maxSafeInteger()],
  ['boolean', fc.boolean()],
  ['timestamptz', time],
  ['jsonb', members],
  ['bytea', fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))],
] as const

for (const [type, value] of cases)
  test(`a column of ${type} is read as it was written`, async () => {
    const property = fc.asyncProperty(nullable<unknown>(value), async (values) => {
      const rows = await db.query<{ value: unknown }>(`select unnest($1::${type}[]) as value`, [
        column(type, values as never[]),
      ])
      assert.deepEqual(
        rows.map((row) => row.value),
        values,
      )
    })
    await fc.assert(property, { numRuns: 100 })
  })

test('a text of megabytes reads back unchanged, as string and UTF-8, and frees its memory', async () => {
  const long = 'ä€𝄞'.repeat(700_000)
  for (const written of [long, Buffer.from(long)]) {
    const columns = [column('text', [written, 'short']), column('text', ['other'])]
    const [row] = await db.query<{ long: string; short: string; other: string }>(
      'select ($1::text[])[1] as long, ($1::text[])[2] as short, ($2::text[])[1] as other',
      columns,
    )
    assert.deepEqual(row, { long, short: 'short', other: 'other' })
    const [, other] = columns
    const kept = Buffer.from(other!)
    releaseBytes(columns)
    assert.equal(columns[0]!.length, 0)
    assert.deepEqual(other, kept)
  }
})

test('a text with NUL is an error of its row', async () => {
  const asked = db.query('select $1::text[]', [column('text', ['a\0b'])])
  await assert.rejects(asked, (error) => error instanceof DbFault && error.kind === 'bad_row')
})
