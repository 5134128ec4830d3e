// Customers' domains for sending and receiving: who has proved a name, and which uses it may have.
import { type DomainId, firstUuidAt, type OrganizationId, type SubmissionId } from '../../base/ids.ts'
import type { Queryable, Tx } from '../../postgres/db.ts'
import type { DeliveryKey } from '../sending/deliveries.ts'

/** A domain whose ownership is proved. Only one organization can have proved a name. */
export interface ProvedDomain {
  id: DomainId
  organizationId: OrganizationId
  name: string
  /** Whether mail may be sent from it. */
  canSend: boolean
  /** Whether its MX is ours, so that mail for it needs no lookup. */
  canReceive: boolean
  /** Whether mail that is sent through it alone has a one-click link to unsubscribe. */
  hasOneClick: boolean
}

/** Returns those of the names that an organization has proved. */
export async function findProvedUses(db: Queryable, names: string[]): Promise<ProvedDomain[]> {
  return await db.query<ProvedDomain>(
    `select id, organization_id as "organizationId", name, outbound = 'verified' as "canSend", inbound = 'verified' as "canReceive",
      one_click as "hasOneClick"
    from domain where name = any($1) and status = 'verified'`,
    [names],
  )
}

/**
 * Lists names whose ownership and MX are proved: the first one of each organization, then the second of each, the longest
 * proved first. So one organization cannot take all the room for names.
 */
export async function listReceivingDomains(db: Queryable, limit: number): Promise<string[]> {
  const rows = await db.query<{ name: string }>(
    `select name from domain where status = 'verified' and inbound = 'verified'
    order by row_number() over (partition by organization_id order by verified_at, id), verified_at, id limit $1`,
    [limit],
  )
  return rows.map(({ name }) => name)
}

/** Lists up to `limit` domains that mail may be sent from: one of each organization, then a second, the longest proved first. */
export async function listSendingDomains(
  db: Queryable,
  limit: number,
): Promise<Pick<ProvedDomain, 'organizationId' | 'name'>[]> {
  return await db.query(
    `select organization_id as "organizationId", name from domain where status = 'verified' and outbound = 'verified'
    order by row_number() over (partition by organization_id order by verified_at, id), verified_at, id limit $1`,
    [limit],
  )
}

/** Turns the one-click link of the proved domain on or off. Returns its organization; null if nobody proved the name. */
export async function changeOneClick(
  tx: Tx,
  name: string,
  state: 'on' | 'off',
): Promise<OrganizationId | null> {
  const [row] = await tx.query<{ id: OrganizationId }>(
    `update domain set one_click = ($2 = 'on') where name = $1 and status = 'verified' returning organization_id as id`,
    [name, state],
  )
  return row?.id ?? null
}

/** Locks the organization's domain against deletion, and returns whether it is proved. Null: no such domain. */
export async function keepDomain(
  tx: Tx,
  organizationId: OrganizationId,
  id: string,
): Promise<{ id: DomainId; name: string; isProved: boolean } | null> {
  const [row] = await tx.query<{ id: DomainId; name: string; isProved: boolean }>(
    `select id, name, status = 'verified' as "isProved" from domain where id = $2 and organization_id = $1 for key share`,
    [organizationId, id],
  )
  return row ?? null
}

/**
 * Finds waiting deliveries of sends through the organization's domain without an inbox, in the order of submissions.
 * Starts with `from`, or the first waiting submission, because contents are kept for weeks after a submission has ended.
 */
export async function findWaitingOfDomain(
  db: Queryable,
  { id, organizationId }: { id: DomainId; organizationId: OrganizationId },
  from: SubmissionId | null,
  limit: number,
): Promise<DeliveryKey[]> {
  return await db.query<DeliveryKey>(
    `select d.submission_id as "submissionId", d.position from send_content c
    cross join lateral (
      select submission_id, position from delivery
      where submission_id = c.submission_id and claim_epoch is null and status in ('pending', 'deferred')
      order by position limit $3) d
    where c.domain_id = $1 and c.submission_id >= coalesce($2, (
      select s.id from submission s where s.organization_id = $4 and s.status = 'pending' order by s.id limit 1))
    order by c.submission_id limit $3`,
    [id, from, limit, organizationId],
  )
}

/**
 * Deletes up to `limit` contents of settled submissions from before `before`, after the submission `after`. Returns the
 * `last` id if there may be more, so that the next batch skips waiting submissions before it, and null at the end. Ids
 * begin with their time. Returns the ids of raw rows that are no longer referenced.
 */
export async function deleteSettledContents(
  tx: Tx,
  before: Date,
  after: SubmissionId | null,
  limit: number,
): Promise<{ last: SubmissionId | null; rawIds: string[] }> {
  const rows = await tx.query<{ id: SubmissionId; rawId: string | null }>(
    // A subquery for each content, because the planner could begin a join with all submissions.
    `delete from send_content where submission_id in (
      select c.submission_id from send_content c
      where c.submission_id < $3::uuid and c.submission_id > $4::uuid and c.created_at < $1
        and (select s.status <> 'pending' from submission s where s.id = c.submission_id)
      order by c.submission_id limit $2
    ) returning submission_id as id, raw_id as "rawId"`,
    [before, limit, firstUuidAt(before.getTime()), after ?? firstUuidAt(0)],
  )
  const rawIds = rows.flatMap(({ rawId }) => rawId ?? [])
  if (rows.length < limit) return { last: null, rawIds }
  return { last: rows.reduce((last, { id }) => (id > last ? id : last), rows[0]!.id), rawIds }
}
