// Direct access to Posthorn's PostgreSQL, for seeding and counting that would be too slow through the API.
import { join } from 'node:path'
import pg from 'pg'
import { silentLog } from '../../src/base/log.ts'
import { type EmbeddedConnection, useEmbedded } from '../../src/postgres/embedded/use-embedded.ts'
import { type Scope, until } from '../../tests/support/until.ts'
import type { Measured } from '../plan.ts'
import { call, createInbox, type Posthorn } from './posthorn.ts'

/** Shares the PostgreSQL of a data folder until the scope ends. Starts it if it is not running. */
export async function shareDatabase(scope: Scope, dataFolder: string): Promise<EmbeddedConnection> {
  const server = await useEmbedded({ directory: join(dataFolder, 'postgres'), log: silentLog })
  scope.after(() => server.release())
  return server.connection
}

/** Opens a session in that database. The scope closes it. */
export async function openSession(scope: Scope, connection: EmbeddedConnection): Promise<pg.Client> {
  const client = new pg.Client(connection)
  await client.connect()
  scope.after(() => client.end())
  return client
}

/** The measured resources of a service: its programs, those of its PostgreSQL, and its write-ahead log. */
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
  /** Returns the API's verdicts on the first messages, each as `spf=pass dkim=pass dmarc=pass`. */
  authentication(): Promise<string[]>
}

interface FiledMessage {
  inboundSecurity: { authentication: Record<'spf' | 'dkim' | 'dmarc', string> }
}

interface ExportPage {
  messages: FiledMessage[]
  nextCursor: string | null
}

/** Creates the inbox that every benchmark sends to and counts its messages by their number in the store. */
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

/** Counts the messages of the export. Each call starts with the last page of the previous call. */
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
