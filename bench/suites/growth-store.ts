// A service whose store holds a given number of messages, and one row of every list in proportion.
import { readFileSync } from 'node:fs'
import type pg from 'pg'
import type { Scope } from '../../tests/support/until.ts'
import { until } from '../../tests/support/until.ts'
import { Endings, temporaryFolder } from '../children.ts'
import { sendBody } from '../load/http.ts'
import { recipient, type Sink, saveMails, sendBySmtp, startSink } from '../load/smtp.ts'
import { writeUnsigned } from '../load/verified-mail.ts'
import { call, createInbox, type Posthorn, startPosthorn } from '../peers/posthorn.ts'
import { measuredOf, openSession, shareDatabase } from '../peers/posthorn-store.ts'
import type { Measured } from '../plan.ts'

export interface Store extends Measured {
  posthorn: Posthorn
  sink: Sink
  folder: string
  inboxId: string
  webhookId: string
  /** Random messages of the inbox, received and sent, with their threads and submissions. */
  picked: { id: string; threadId: string; direction: string; submissionId: string | null; at: Date }[]
  /** Returns how many messages of the inbox are filed. */
  countFiled(): Promise<number>
  /** Returns how many recipients wait for delivery, up to one. */
  countWaiting(): Promise<number>
}

const [seed, lists] = ['growth-seed.sql', 'growth-lists.sql'].map((name) =>
  readFileSync(new URL(name, import.meta.url), 'utf8'),
) as [string, string]
/** Short, so that seeding ten million messages takes minutes. */
export const textBytes = 250
/** Divisible by four, because the messages of a thread are seeded together. */
const seedChunk = 100_000

/** Seeds a store of `messages`, and starts the service on it with all roles. Delivers to a sink. */
export async function startStore(scope: Scope, messages: number): Promise<Store> {
  const folder = temporaryFolder(scope, 'growth')
  const sink = await startSink(scope, folder)
  const first = new Endings()
  scope.after(() => first.run())
  const again = await startPosthorn(first, { onward: sink.port, dataFolder: folder })
  const filling = await makeTemplates(again, folder)
  const inboxId = filling.here
  const url = JSON.stringify({ url: 'http://127.0.0.1:1/' })
  const { id: webhookId } = await call<{ id: string }>(again, {
    method: 'POST',
    path: '/v1/webhooks',
    body: url,
  })
  const session = await openSession(first, await shareDatabase(first, again.dataFolder))
  await session.query(`update webhook set status = 'disabled'`)
  await fill(session, { here: filling.here, elsewhere: filling.elsewhere, messages, webhook: webhookId })
  const picked = await pick(session, messages, inboxId)
  await first.run()
  const posthorn = await startPosthorn(scope, { onward: sink.port, again })
  const counting = await openSession(scope, await shareDatabase(scope, posthorn.dataFolder))
  const ask = async (sql: string) => Number((await counting.query(sql)).rows[0].number)
  const countFiled = () => ask(`select message_seq as number from inbox where id = '${inboxId}'`)
  const countWaiting = () =>
    ask(`select count(*) as number from (
      (select from delivery where claim_epoch is null and status in ('pending', 'deferred') limit 1)
      union all (select from delivery where claim_epoch is not null limit 1)) w`)
  const measured = await measuredOf(scope, posthorn)
  return { posthorn, sink, folder, inboxId, webhookId, picked, countFiled, countWaiting, pids: measured.pids }
}

/** The values that the seed reads. */
export interface Filling {
  /** The inbox of the templates. */
  here: string
  elsewhere: string
}

/** Seeds messages by number. Their times, from thirty days to one day ago, are in the order of their numbers. */
export class Seeder {
  readonly #session: pg.Client
  readonly #values: Record<string, unknown>

  constructor(session: pg.Client, values: Filling & { messages: number; webhook?: string }) {
    this.#session = session
    this.#values = { ...values }
  }

  async seed(first: number, last: number): Promise<void> {
    await this.#set({ ...this.#values, first, last })
    await this.#session.query(seed)
  }

  /** Fills the other lists, once all messages are seeded. */
  async fillLists(): Promise<void> {
    await this.#session.query(lists)
  }

  async #set(values: Record<string, unknown>): Promise<void> {
    for (const [name, value] of Object.entries(values))
      await this.#session.query('select set_config($1, $2, false)', [`bench.${name}`, `${value}`])
  }
}

/** Seeds all messages and lists. */
async function fill(
  session: pg.Client,
  values: Filling & { messages: number; webhook: string },
): Promise<void> {
  const { messages } = values
  const seeder = new Seeder(session, values)
  await session.query(`set synchronous_commit = off; set maintenance_work_mem = '512MB'`)
  // Indexes that enforce nothing are built at the end, which takes half of the time.
  const { rows: indexes } = await session.query(
    `select format('drop index %I', c.relname) as drop, pg_get_indexdef(c.oid) as definition
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where not i.indisunique and c.relnamespace = 'public'::regnamespace`,
  )
  for (const index of indexes) await session.query(index.drop)
  for (let first = 1; first <= messages; first += seedChunk) {
    await seeder.seed(first, Math.min(messages, first + seedChunk - 1))
    if (messages > seedChunk) process.stderr.write(`\rseeding: ${(first - 1).toLocaleString('en')} messages`)
  }
  await seeder.fillLists()
  for (const index of indexes) await session.query(index.definition)
  await session.query('vacuum (analyze)')
}

async function pick(session: pg.Client, messages: number, inboxId: string): Promise<Store['picked']> {
  const percent = Math.min(100, 400_000 / messages)
  const { rows } = await session.query(
    `select id, thread_id as "threadId", direction, submission_id as "submissionId", created_at as at from (
      select m.* from message m tablesample system (${percent}) where inbox_id = $1 and seq >= 100
    ) m order by random() limit 800`,
    [inboxId],
  )
  return rows
}

/** Receives one message and delivers one through the service itself, and has both indexed. Returns their inbox and another. */
export async function makeTemplates(posthorn: Posthorn, folder: string): Promise<Filling> {
  const inboxId = await createInbox(posthorn, 'u')
  const mail = writeUnsigned('unsigned.example')(recipient, 0, { textBytes, files: 'none' })
  await sendBySmtp({
    port: posthorn.smtpPort,
    ...saveMails(folder, [mail], [recipient]),
    count: 1,
    sessions: 1,
    connections: 'kept',
  })
  const path = `/v1/inboxes/${inboxId}/messages`
  await call(posthorn, {
    method: 'POST',
    path,
    body: sendBody({ recipient: 'u@far.test', textBytes }),
    key: 'bench-template',
  })
  await until('one message is filed and one delivered', async () => {
    const answer = await call<{ messages: { delivery: { status: string } }[] }>(posthorn, {
      method: 'GET',
      path,
    })
    const states = answer.messages.map(({ delivery }) => delivery.status)
    return states.includes('received') && states.includes('delivered')
  })
  await until('both are indexed', async () => {
    const { messages } = await call<{ messages: unknown[] }>(posthorn, {
      method: 'GET',
      path: `${path}?q=test`,
    })
    return messages.length === 2
  })
  return { here: inboxId, elsewhere: await createInbox(posthorn, 'elsewhere') }
}
