// Organizations: created, approved, suspended, limited. Operations for operators; none of them is public.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid, type OrganizationId } from '../../base/ids.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import {
  findOrganization,
  insertOrganization,
  type LimitChanges,
  type Limits,
  type OrganizationRow,
  renameOrganization,
  updateLimits,
  updateOrganizationStatus,
} from '../../store/accounts/organizations.ts'
import { type Actor, operator, recordAction } from '../audit.ts'
import { untilKnownEverywhere } from '../known-everywhere.ts'
import { requireName } from '../require-name.ts'

type Deps = { db: Db; clock: Clock }

/** The limits of a new organization unless the deployment sets others. */
export const defaultLimits: Limits = {
  messagesPerMinute: 60,
  messagesPerDay: 2_000,
  recipientsPerDay: 5_000,
  requestsPerMinute: 600,
  recipientsPerMessage: 50,
  messageContentBytes: 10 << 20,
  inboxes: 100,
  domains: 10,
  inboxesPerDomain: 50,
  webhookEndpoints: 10,
  managedStarter: 5,
  receivedMessagesPerDay: 20_000,
  receivedBytesPerDay: 2 * 2 ** 30,
  storedBytes: 20 * 2 ** 30,
}

/** Limits that the database counts in 64 bits. All others are 32 bits. */
const largeLimits = ['receivedBytesPerDay', 'storedBytes']

/** Whether the limit may have this value. */
export function isLimit(name: string, value: unknown): boolean {
  const max = largeLimits.includes(name) ? Number.MAX_SAFE_INTEGER : 2 ** 31 - 1
  return (
    Object.hasOwn(defaultLimits, name) &&
    Number.isSafeInteger(value) &&
    Number(value) >= 0 &&
    Number(value) <= max
  )
}

export async function createOrganization(
  { db, clock }: Deps,
  input: { name: string; status: 'pending' | 'active'; limits: Limits },
): Promise<OrganizationRow> {
  const at = clock.now()
  const name = requireName(input.name)
  const row = { ...input, name, id: newUuid<OrganizationId>(), createdAt: at, updatedAt: at }
  await db.transaction(async (tx) => {
    await insertOrganization(tx, row)
    await recordAction(tx, row.id, operator, { action: 'organization.created', subject: row.name, at })
  })
  return { ...row, serverKeys: false, managedUsed: 0 }
}

/** Approves or suspends the organization and applies `changes` in the same commit. When it returns, every node knows. */
export async function changeOrganizationStatus(
  { db, clock }: Deps,
  id: string,
  status: 'active' | 'suspended',
  actor: Actor = operator,
  changes: LimitChanges = {},
): Promise<OrganizationRow> {
  const action = status === 'active' ? 'organization.approved' : 'organization.suspended'
  const row = await db.transaction(async (tx) => {
    const at = clock.now()
    const changed = found(await updateOrganizationStatus(tx, id, status, at), id)
    await recordAction(tx, changed.id, actor, { action, subject: changed.name, at })
    return Object.keys(changes).length > 0 ? await applyLimits(tx, id, changes, actor, at) : changed
  })
  await untilKnownEverywhere()
  return row
}

/** When it returns, every node knows. */
export async function changeLimits(
  { db, clock }: Deps,
  id: string,
  changes: LimitChanges,
  actor: Actor = operator,
): Promise<OrganizationRow> {
  const row = await db.transaction((tx) => applyLimits(tx, id, changes, actor, clock.now()))
  await untilKnownEverywhere()
  return row
}

async function applyLimits(
  tx: Tx,
  id: string,
  changes: LimitChanges,
  actor: Actor,
  at: Date,
): Promise<OrganizationRow> {
  const row = found(await updateLimits(tx, id, changes, at), id)
  const entry = {
    action: 'organization.limits_changed',
    subject: row.name,
    detail: { ...changes },
    at,
  } as const
  await recordAction(tx, row.id, actor, entry)
  return row
}

/** Renames the organization. Only people use the name; no code depends on it. */
export async function nameOrganization(
  { db, clock }: Deps,
  id: string,
  given: string,
  actor: Actor = operator,
): Promise<OrganizationRow> {
  const name = requireName(given)
  return await db.transaction(async (tx) => {
    const at = clock.now()
    const before = found(await findOrganization(tx, id), id)
    const row = found(await renameOrganization(tx, before.id, name, at), id)
    const detail = { from: before.name }
    await recordAction(tx, row.id, actor, { action: 'organization.renamed', subject: name, detail, at })
    return row
  })
}

function found(row: OrganizationRow | null, id: string): OrganizationRow {
  if (!row) throw new ServiceError('not_found', `there is no organization ${id}, or it is being deleted`)
  return row
}
