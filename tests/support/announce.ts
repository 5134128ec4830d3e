// Announces events as another node does: in a transaction, and then by a notification.
import type { Db } from '../../src/postgres/db.ts'
import { announce } from '../../src/store/events/outbox.ts'

const wake = JSON.stringify({ node: 0, roles: [], announced: true, routes: [], webhooks: [] })

export async function announceAsNode(db: Db, announcement: Parameters<typeof announce>[1]): Promise<void> {
  await db.transaction((tx) => announce(tx, announcement))
  await db.query('select pg_notify($1, $2)', ['posthorn_nodes', wake])
}
