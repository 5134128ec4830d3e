// Deletes expired rows about people: links, invitations, attempts, sessions, addresses that were never proved.

import type { Tx } from '../../postgres/db.ts'
import { knownNetworkDays } from './known-networks.ts'

/** The condition of expired rows by table; `$1` is now. */
const stale: Readonly<Record<string, string>> = {
  person_token: 'expires_at < $1',
  invitation: 'expires_at < $1',
  sign_in_failure: `last_at < $1::timestamptz - interval '1 day' and blocked_until < $1`,
  known_network: `last_at < $1::timestamptz - interval '${knownNetworkDays} days'`,
  letter_count: 'ends_at < $1',
  // A day longer than any session can be used.
  session: `ended_at < $1::timestamptz - interval '1 day' or last_used_at < $1::timestamptz - interval '31 days'`,
  person: `confirmed_at is null and created_at < $1::timestamptz - interval '30 days'
    and not exists (select from person_token t where t.person_id = person.id or t.email = person.email)
    and not exists (select from member m where m.person_id = person.id)`,
}

/** Deletes up to `limit` rows of each table; returns whether there may be more. */
export async function deleteStale(tx: Tx, at: Date, limit: number): Promise<boolean> {
  let isFull = false
  for (const [table, condition] of Object.entries(stale)) {
    const rows = await tx.query(
      `delete from ${table} where ctid = any(array(select ctid from ${table} where ${condition} limit $2)) returning 1`,
      [at, limit],
    )
    isFull ||= rows.length === limit
  }
  return isFull
}
