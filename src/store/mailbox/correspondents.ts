// The addresses that an inbox has exchanged mail with.
import type { InboxId, OrganizationId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'

/** Only the newest are read: strangers can write in the name of an address, and other inboxes to it, any number of times. */
const maxRead = 100

/** A recipient by its address key, and by its address with the domain in Unicode, as received mail may have it. */
export interface AddressedRecipient {
  key: string
  unicode: string
}

/**
 * Returns the key of a recipient who has not written to the inbox, and to whom no message was accepted from it; null if there
 * is none. Received mail has its From address as written. It counts if DMARC passed, or if the domain of its From field has
 * no policy: with another result the address is forged, unproven, or that of the envelope.
 */
export async function findStranger(
  db: Queryable,
  { organizationId, inboxId }: { organizationId: OrganizationId; inboxId: InboxId },
  recipients: readonly AddressedRecipient[],
): Promise<string | null> {
  const rows = await db.query<{ key: string }>(
    `select r.key from unnest($3::text[], $4::text[]) r(key, unicode)
    where not exists (
      select from unnest(array[r.key, r.unicode]) written(email), lateral (
        select m.security from message m where m.inbox_id = $2 and m.direction = 'inbound'
          and left(lower(m.sender->>'email'), 400) = left(lower(written.email), 400)
        order by m.id desc limit ${maxRead}) recent
      where coalesce(recent.security->'authentication'->>'dmarc', 'not_evaluated')
        in ('pass', 'none', 'not_evaluated'))
    and not exists (
      select from (
        select d.inbox_id from delivery d where d.organization_id = $1 and d.address_key = r.key
        order by d.submission_id desc limit ${maxRead}) recent
      where recent.inbox_id = $2)
    limit 1`,
    [organizationId, inboxId, recipients.map(({ key }) => key), recipients.map(({ unicode }) => unicode)],
  )
  return rows[0]?.key ?? null
}
