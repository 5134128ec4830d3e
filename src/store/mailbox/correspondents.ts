// The addresses that an inbox has exchanged mail with.
import type { InboxId, OrganizationId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'

/** Only the newest are read: strangers can write in the name of an address, and other inboxes to it, any number of times. */
const maxRead = 100

/**
 * Returns one of the address keys that has not written to the inbox, and to which no message was accepted from it; null if
 * there is none. Mail that fails DMARC was not written by its From address.
 */
export async function findStranger(
  db: Queryable,
  { organizationId, inboxId }: { organizationId: OrganizationId; inboxId: InboxId },
  addressKeys: readonly string[],
): Promise<string | null> {
  const rows = await db.query<{ key: string }>(
    `select k.key from unnest($3::text[]) k(key)
    where not exists (
      select from (
        select m.security from message m where m.inbox_id = $2 and m.direction = 'inbound'
          and left(lower(m.sender->>'email'), 400) = left(k.key, 400)
        order by m.id desc limit ${maxRead}) recent
      where recent.security->'authentication'->>'dmarc' is distinct from 'fail')
    and not exists (
      select from (
        select d.inbox_id from delivery d where d.organization_id = $1 and d.address_key = k.key
        order by d.submission_id desc limit ${maxRead}) recent
      where recent.inbox_id = $2)
    limit 1`,
    [organizationId, inboxId, addressKeys],
  )
  return rows[0]?.key ?? null
}
