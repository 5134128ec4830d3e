// What an organization's own mail says of addresses: those it has suppressed, and how its deliveries to them ended.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'

export interface AddressEvidence {
  isSuppressed: boolean
  /** The last delivery that says so found the mailbox (true), or heard that there is none (false). */
  mailbox: boolean | null
}

/** The evidence for each of the keys (`sameAddressKey`), in their order; of each address the last 20 deliveries count. */
export async function findAddressEvidence(
  db: Queryable,
  organizationId: OrganizationId,
  addressKeys: string[],
): Promise<AddressEvidence[]> {
  if (addressKeys.length === 0) return []
  // With a limit each key is one probe of the index; `exists` would be planned as a reading of all the suppressions.
  // A permanent refusal may be for a full mailbox as well: the event knows what kind it was.
  return await db.query<AddressEvidence>(
    `select coalesce((
        select true from suppression s where s.organization_id = $1 and s.address_key = k.key limit 1
      ), false) as "isSuppressed",
      (select d.status = 'delivered' from (
          select submission_id, email, status, failure_code from delivery
          where organization_id = $1 and address_key = k.key order by submission_id desc limit 20
        ) d
        where d.status = 'delivered' or d.failure_code = 'hard_bounce' and (
          select true from event e where e.submission_id = d.submission_id and e.recipient = d.email
            and e.type = 'bounced' and e.classification = 'hard_bounce' limit 1)
        order by d.submission_id desc limit 1) as mailbox
    from unnest($2::text[]) with ordinality as k(key, ordinal) order by k.ordinal`,
    [organizationId, addressKeys],
  )
}
