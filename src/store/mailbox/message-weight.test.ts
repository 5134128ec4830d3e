// The database's weight of a message bounds the length of the message and its texts as JSON.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { testDatabase } from '../../../tests/support/postgres.ts'
import { Db } from '../../postgres/db.ts'
import { jsonTextBytes } from './message-weight.ts'

const db = new Db({ connection: await testDatabase({ after }), maxConnections: 1 })
after(() => db.close())

const text = fc
  .oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\x01', '\x1f', '\x7f', 'ä', '€', '😀', 'a') }),
  )
  .map((one) => one.replaceAll('\0', '').toWellFormed())

test('a text weighs its length as JSON, whatever it contains', async () => {
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

test('a message is at most six times its weight as JSON, whichever field is long', async () => {
  const texts = fc.sample(text, 500).map((one) => one.repeat(100))
  const places = texts.map((one) => JSON.stringify([{ email: 'a@far.test', name: one }]))
  const ids = Array.from({ length: 100 }, () => `<${'€'.repeat(998)}>`)
  await db.query(
    `insert into message (id, organization_id, inbox_id, thread_id, seq, direction, internet_message_id, reference_ids,
      sender, recipients, subject, text, html, metadata, purpose, attachments, security, created_at, updated_at)
    select 'msg_' || n, gen_random_uuid(), 'inb', 'thr', n, case when n % 2 = 0 then 'inbound' else 'outbound' end, left(t, 300),
      case when n % 3 = 0 then $3::text[] else '{}' end, case when n % 4 = 0 then p->0 else '{}' end, jsonb_build_object('to', p), t,
      case when n % 5 > 0 then t else '' end, t, case when n % 4 = 1 then jsonb_build_object('key', t) else '{}' end, '', p,
      case when n % 4 = 2 then jsonb_build_object('spam', t) end, now(), now()
    from unnest($1::text[], $2::jsonb[]) with ordinality x(t, p, n)`,
    [texts, places, ids],
  )
  const over = await db.query(
    `select m.id from message m where 6 * m.weight_bytes < octet_length(row_to_json(m)::text)
      + case when m.direction = 'inbound' then octet_length(to_json(m.text)::text) else 0 end`,
  )
  assert.deepEqual(over, [])
})
