// The addresses that an inbox has exchanged mail with.
import type { InboxId, OrganizationId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'

/** Only the newest deliveries to an address are read, because other inboxes may have sent it any number. */
const maxDeliveries = 100

/** Returns those of the address keys that have written to the inbox, or to which a message was accepted from it. */
export async function findCorrespondents(
  db: Queryable,
  { organizationId, inboxId }: { organizationId: OrganizationId; inboxId: InboxId },
  addressKeys: readonly string[],
): Promise<Set<string>> {
  const rows = await db.query<{ key: string }>(
    `select k.key from unnest($3::text[]) k(key)
    where exists (
      select from message m where m.inbox_id = $2 and m.direction = 'inbound'
        and left(lower(m.sender->>'email'), 400) = left(k.key, 400))
    or exists (
      select from (
        select d.inbox_id from delivery d where d.organization_id = $1 and d.address_key = k.key
        order by d.submission_id desc limit ${maxDeliveries}) recent
      where recent.inbox_id = $2)`,
    [organizationId, inboxId, addressKeys],
  )
  return new Set(rows.map(({ key }) => key))
}
