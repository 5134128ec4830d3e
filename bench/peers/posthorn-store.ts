// A look behind Posthorn's API, at its PostgreSQL: for what is seeded or counted too often to ask the service.
import { join } from 'node:path'
import pg from 'pg'
import { silentLog } from '../../src/base/log.ts'
import { type EmbeddedConnection, useEmbedded } from '../../src/postgres/embedded/use-embedded.ts'
import { type Scope, until } from '../../tests/support/until.ts'
import type { Measured } from '../plan.ts'
import { call, createInbox, type Posthorn } from './posthorn.ts'

/** Shares the PostgreSQL of a data folder (started, if nobody runs it) until the scope ends. */
export async function shareDatabase(scope: Scope, dataFolder: string): Promise<EmbeddedConnection> {
  const server = await useEmbedded({ directory: join(dataFolder, 'postgres'), log: silentLog })
  scope.after(() => server.release())
  return server.connection
}

/** A session in that database, closed with the scope. */
export async function openSession(scope: Scope, connection: EmbeddedConnection): Promise<pg.Client> {
  const client = new pg.Client(connection)
  await client.connect()
  scope.after(() => client.end())
  return client
}

/** What a service costs: its programs, those of its PostgreSQL, and what that logs. */
export async function measuredOf(scope: Scope, posthorn: Posthorn): Promise<Measured> {
  const session = await openSession(scope, await shareDatabase(scope, posthorn.dataFolder))
  return {
    pids: () => [...posthorn.servicePids(), ...posthorn.databasePids()],
    walBytes: async () => {
      const { rows } = await session.query("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') as bytes")
      return Number(rows[0].bytes)
    },
  }
}

export interface InboxCounter {
  inboxId: string
  /** Resolves with the time (milliseconds since the epoch) at which `messages` more than at the last call were filed. */
  reach(messages: number): Promise<number>
  /** Throws unless the API shows every message that was counted. */
  verify(): Promise<void>
  /** What the API says of the first messages, each as `spf=pass dkim=pass dmarc=pass`. */
  authentication(): Promise<string[]>
}

interface FiledMessage {
  inboundSecurity: { authentication: Record<'spf' | 'dkim' | 'dmarc', string> }
}

interface ExportPage {
  messages: FiledMessage[]
  nextCursor: string | null
}

/** Creates the inbox that every benchmark sends to and counts what is filed there: its rows are numbered in the store. */
export async function countInbox(scope: Scope, posthorn: Posthorn): Promise<InboxCounter> {
  const inboxId = await createInbox(posthorn, 'u')
  const session = await openSession(scope, await shareDatabase(scope, posthorn.dataFolder))
  let total = 0
  const exported = countExport(posthorn, inboxId)
  const filed = async () => {
    const { rows } = await session.query('select message_seq from inbox where id = $1', [inboxId])
    return Number(rows[0]?.message_seq)
  }
  return {
    inboxId,
    reach: async (messages) => {
      total += messages
      const reached = async () => (await filed()) >= total
      await until(`Posthorn files ${messages} messages`, reached, { timeoutMs: 120_000, everyMs: 10 })
      return Date.now()
    },
    verify: async () => {
      const shown = await exported()
      if (shown !== total) throw new Error(`the API shows ${shown} of ${total} messages that were filed`)
    },
    authentication: async () => {
      const path = `/v1/inboxes/${inboxId}/export?limit=20`
      const { messages } = await call<ExportPage>(posthorn, { method: 'GET', path })
      return messages.map(({ inboundSecurity: { authentication } }) => {
        const { spf, dkim, dmarc } = authentication
        return `spf=${spf} dkim=${dkim} dmarc=${dmarc}`
      })
    },
  }
}

/** Counts what the export shows; each call begins with the last page of the one before. */
function countExport(posthorn: Posthorn, inboxId: string): () => Promise<number> {
  let known = { cursor: '', messages: 0 }
  return async () => {
    for (;;) {
      const from = known.cursor && `&cursor=${encodeURIComponent(known.cursor)}`
      const path = `/v1/inboxes/${inboxId}/export?limit=20${from}`
      const page = await call<ExportPage>(posthorn, { method: 'GET', path })
      const messages = known.messages + page.messages.length
      if (page.nextCursor === null) return messages
      known = { cursor: page.nextCursor, messages }
    }
  }
}
