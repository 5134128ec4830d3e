// Evidence about addresses from an organization's own mail: its suppressions and the results of its deliveries.
import type { OrganizationId } from '../../base/ids.ts'
import type { Queryable } from '../../postgres/db.ts'

export interface AddressEvidence {
  isSuppressed: boolean
  /** The last conclusive delivery found the mailbox (true), or heard that there is none (false). Null: no such delivery. */
  mailbox: boolean | null
}

/** Returns the evidence for each key (`sameAddressKey`), in order. The last 20 deliveries to each address count. */
export async function findAddressEvidence(
  db: Queryable,
  organizationId: OrganizationId,
  addressKeys: string[],
): Promise<AddressEvidence[]> {
  if (addressKeys.length === 0) return []
  // The limit makes each key one index probe; for `exists` the planner would read all suppressions. A permanent refusal may
  // also mean a full mailbox. Only the event's classification distinguishes them.
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
