// What a text weighs in an answer, as the database measures it, is what its JSON has.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { testDatabase } from '../../../tests/support/postgres.ts'
import { Db } from '../../postgres/db.ts'
import { jsonTextBytes } from './message-weight.ts'

const db = new Db({ connection: await testDatabase({ after }), maxConnections: 1 })
after(() => db.close())

test('a text weighs what it is as JSON, whatever is in it', async () => {
  const text = fc
    .oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\x01', '\x1f', '\x7f', 'ä', '€', '😀', 'a') }),
    )
    .map((one) => one.replaceAll('\0', '').toWellFormed())
  const texts = fc.sample(text, 500)
  const weighed = await db.query<{ weight: number }>(
    `select ${jsonTextBytes} as weight from (select t.text, t.place, null as html, null as extracted_text, 'outbound' as direction
      from unnest($1::text[]) with ordinality t(text, place)) m order by m.place`,
    [texts],
  )
  const bytes = texts.map((one) => Buffer.byteLength(JSON.stringify(one)))
  assert.deepEqual(
    weighed.map(({ weight }) => weight),
    bytes,
  )
})
