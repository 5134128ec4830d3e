// Checks a domain: looks up its records outside any transaction, then judges and stores the result in one.
import type { Clock } from '../../base/clock.ts'
import { ServiceError } from '../../base/errors.ts'
import { newUuid } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { type DomainEvaluation, evaluate, selectorsSeen } from '../../dns/evaluate-domain.ts'
import { lookupRecords, type RecordAnswers } from '../../dns/lookup-domain.ts'
import type { Resolver } from '../../dns/resolver.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import {
  activateFoundKeys,
  deleteRetiredKeys,
  listDomainKeys,
  retiredKeysDue,
} from '../../store/domains/dkim-keys.ts'
import {
  claimDueDomains,
  type DomainRow,
  domainsDue,
  findDomain,
  isProvedByAnother,
  lockDomain,
  lockProof,
  updateChecked,
} from '../../store/domains/domains.ts'
import { announce } from '../../store/events/outbox.ts'
import { type Caller, requireWholeOrganization } from '../caller.ts'
import { listedRetiredMs } from '../secrets/dkim-secret.ts'
import { nextStanding } from '../states.ts'
import { type DomainView, recordsOf, type ViewDeps, viewOneDomain } from './domain-view.ts'

type Deps = ViewDeps & { db: Db; clock: Clock; resolver: Pick<Resolver, 'resolve'> }

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** If a node dies during a check, other nodes take the domain after this time. */
const leaseMs = 10 * 60_000
const clockDifferenceMs = 60_000

/** Checks the domain now. The answer shows the result of the newest check. */
export async function verifyDomain(deps: Deps, caller: Caller, id: string): Promise<DomainView> {
  const row = await findDomain(deps.db, caller.organizationId, id)
  if (!row) throw gone()
  requireWholeOrganization(caller)
  const view = await checkDomain(deps, row)
  if (!view) throw gone()
  return view
}

/** Holds if `recheckDomains` can do something. */
export const recheckDue = `(${domainsDue} or ${retiredKeysDue(listedRetiredMs)})`

/** Checks domains whose last check is a day old, up to `limit` at once. True if there may be more. */
export async function recheckDomains({ log, ...deps }: Deps & { log: Log }, limit: number): Promise<boolean> {
  const { db, clock } = deps
  const at = clock.now()
  const leaseUntil = new Date(at.getTime() + leaseMs)
  const due = await db.transaction(async (tx) => {
    await deleteRetiredKeys(tx, new Date(at.getTime() - listedRetiredMs))
    return await claimDueDomains(tx, at, leaseUntil, limit)
  })
  const checks = due.map(async ({ id, organizationId }) => {
    const row = await findDomain(db, organizationId, id)
    if (row) await checkDomain(deps, row)
  })
  for (const result of await Promise.allSettled(checks)) {
    if (result.status === 'rejected') log.warn({ err: result.reason }, 'domain could not be checked')
  }
  return due.length === limit
}

function gone(): ServiceError {
  return new ServiceError('not_found', 'There is no such domain.')
}

/** Null if the domain was deleted meanwhile. */
async function checkDomain(
  deps: Deps,
  { id, organizationId, ...row }: DomainRow,
): Promise<DomainView | null> {
  const { db, clock, resolver } = deps
  const at = clock.now()
  const keys = await listDomainKeys(db, [id])
  const found = await lookupRecords(resolver, recordsOf(row, keys, deps), { asker: organizationId })
  return await db.transaction(async (tx) => {
    await lockProof(tx, row.name)
    const current = await lockDomain(tx, organizationId, id)
    if (!current) return null
    // A check that began later was stored already, and its findings are newer.
    if (current.checkedAt && isBetween(at, current.checkedAt, clock.now()))
      return await viewOneDomain(tx, deps, current)
    return await viewOneDomain(tx, deps, await record(tx, current, { found, deps, at }))
  })
}

/** A time further ahead than nodes' clocks differ was written by a wrong clock. */
function isBetween(begun: Date, time: Date, now: Date): boolean {
  return time > begun && time.getTime() <= now.getTime() + clockDifferenceMs
}

/** Judges by the records that are required now, as the keys may have been rotated since the look-ups began. */
async function record(
  tx: Tx,
  row: DomainRow,
  { found, deps, at }: { found: RecordAnswers; deps: ViewDeps; at: Date },
): Promise<DomainRow> {
  const keys = await listDomainKeys(tx, [row.id])
  const records = recordsOf(row, keys, deps)
  const isTaken = await isProvedByAnother(tx, row.organizationId, row.name)
  const evaluation = evaluate(records, found, isTaken ? 'another' : 'nobody')
  const haveKeysChanged = await activateFoundKeys(
    tx,
    { domain: row.name, domainId: row.id },
    selectorsSeen(keys, evaluation),
    at,
  )
  const next = follow(row, evaluation, at)
  const moves = movesBetween(row, next)
  if (moves.size > 0 || haveKeysChanged) next.updatedAt = at
  await updateChecked(tx, next)
  await announceMoves(tx, next, moves, at)
  return next
}

/** The row after a check. */
function follow(row: DomainRow, evaluation: DomainEvaluation, at: Date): DomainRow {
  const ownership = nextStanding(row.status, row.standing.ownership, evaluation.ownership, at)
  const outbound = nextStanding(row.outbound, row.standing.outbound, evaluation.outbound, at)
  const inbound = nextStanding(row.inbound, row.standing.inbound, evaluation.inbound, at)
  const checkedAt = at.toISOString()
  const verdicts = [...evaluation.records]
  const isUnknown = verdicts.some(([, { status }]) => status === 'error')
  const isProved = ownership.state !== 'pending'
  return {
    ...row,
    status: ownership.state,
    outbound: outbound.state,
    inbound: inbound.state,
    standing: { ownership: ownership.standing, outbound: outbound.standing, inbound: inbound.standing },
    observations: Object.fromEntries(
      verdicts.map(([question, { status, observed }]) => [question, { status, observed, checkedAt }]),
    ),
    checkedAt: at,
    // Failed look-ups are repeated sooner.
    nextCheckAt: isProved ? new Date(at.getTime() + (isUnknown ? hourMs : dayMs)) : null,
    verifiedAt: row.status !== 'verified' && ownership.state === 'verified' ? at : row.verifiedAt,
  }
}

const parts = ['status', 'outbound', 'inbound'] as const

/** `verified` if a state became verified, `failed` if one was lost. */
function movesBetween(before: DomainRow, after: DomainRow): Set<'verified' | 'failed'> {
  const moved = parts.filter((part) => before[part] !== after[part]).map((part) => after[part])
  return new Set(moved.filter((state) => state !== 'pending'))
}

async function announceMoves(
  tx: Tx,
  row: DomainRow,
  moves: Set<'verified' | 'failed'>,
  at: Date,
): Promise<void> {
  const { id, organizationId } = row
  const items = [...moves].map((move) => ({ id: newUuid(), type: `domain.${move}` as const, domain: id }))
  if (items.length > 0) await announce(tx, { organizationId, at, items })
}
