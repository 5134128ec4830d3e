// Every operation of /v1, /app/v1 and the desk: its outcome for an organization that is not active, and its audit entries.
// `node scripts/operations.ts` prints the table.
import assert from 'node:assert/strict'
import type { RefusalCode } from '../../src/base/errors.ts'
import type { Action } from '../../src/flow/audit.ts'
import type { Queryable } from '../../src/postgres/db.ts'

export const inactiveStates = ['pending', 'suspended', 'deleting'] as const
/** `not theirs`: the operation is about no single organization. */
type Outcome = 'allowed' | 'not theirs' | RefusalCode
type Outcomes = Readonly<Record<(typeof inactiveStates)[number], Outcome>>
/** The actions of the audit entries that one success writes, in order; or the reason for none. */
type Recorded = readonly Action[] | { none: string }
export type Surface = '/v1' | '/app/v1' | '/desk/v1'

export interface OperationRow {
  surface: Surface
  /** `POST /v1/send` */
  name: string
  outcomes: Outcomes
  recorded: Recorded
}

const each = (outcome: Outcome): Outcomes => ({ pending: outcome, suspended: outcome, deleting: outcome })
const untilDeletion = (deleting: RefusalCode): Outcomes => ({ ...each('allowed'), deleting })

const reads = { none: 'it reads' }
const changesNothing = { none: 'it changes nothing' }
const isTheRecord = { none: 'what it makes is listed, with who made it and when' }
const onlyMails = { none: 'it mails a link; what the link does is recorded' }

/** Operations of the API, by a key or by a session. */
const ofTheApi: Record<string, Recorded> = {
  'GET /me': reads,
  'GET /inboxes': reads,
  'POST /inboxes': ['inbox.created'],
  'GET /inboxes/{inboxId}': reads,
  'DELETE /inboxes/{inboxId}': ['inbox.deleted'],
  'GET /inboxes/{inboxId}/export': reads,
  'GET /inboxes/{inboxId}/messages': reads,
  'POST /inboxes/{inboxId}/messages': isTheRecord,
  'GET /inboxes/{inboxId}/threads': reads,
  'GET /messages/{messageId}': reads,
  'DELETE /messages/{messageId}': ['message.deleted'],
  'GET /messages/{messageId}/source': reads,
  'GET /messages/{messageId}/headers': reads,
  'GET /messages/{messageId}/attachments/{attachmentId}': reads,
  'GET /threads/{threadId}': reads,
  'POST /threads/{threadId}/replies': isTheRecord,
  'POST /send': isTheRecord,
  'GET /submissions': reads,
  'GET /submissions/{submissionId}': reads,
  'GET /submissions/{submissionId}/events': reads,
  'POST /submissions/{submissionId}/cancel': ['submission.cancelled'],
  'GET /suppressions': reads,
  'POST /suppressions': ['suppression.added'],
  'DELETE /suppressions': ['suppression.removed'],
  'GET /complaints': reads,
  'GET /domains': reads,
  'POST /domains': ['domain.registered'],
  'GET /domains/{domainId}': reads,
  'DELETE /domains/{domainId}': ['domain.deleted'],
  'POST /domains/{domainId}/verify': { none: 'it looks at DNS; the domain shows what it found' },
  'POST /domains/{domainId}/rotate-dkim': ['domain.keys_rotated'],
  'GET /domains/{domainId}/zone': reads,
  'GET /domains/{domainId}/traffic': reads,
  'GET /metrics/delivery': reads,
  'POST /validate': changesNothing,
  'POST /validate/bulk': changesNothing,
  'GET /webhooks': reads,
  'POST /webhooks': ['webhook.created'],
  'GET /webhooks/{webhookId}': reads,
  'PATCH /webhooks/{webhookId}': ['webhook.changed'],
  'DELETE /webhooks/{webhookId}': ['webhook.deleted'],
  'POST /webhooks/{webhookId}/rotate-secret': ['webhook.secret_rotated'],
  'POST /webhooks/{webhookId}/test': { none: 'it calls their own endpoint; the call is listed' },
  'GET /webhooks/{webhookId}/deliveries': reads,
  'POST /webhooks/{webhookId}/deliveries/{deliveryId}/replay': ['webhook.call_replayed'],
  'GET /events': reads,
}

/** Operations of the organization, in the dashboard only. */
const ofTheOrganization: Record<string, Recorded> = {
  'PATCH /inboxes/{inboxId}': ['inbox.renamed'],
  'GET /mail/inboxes': reads,
  'GET /mail/threads': reads,
  'GET /mail/messages': reads,
  'GET /messages/{messageId}/page': reads,
  'GET /messages/{messageId}/reply-plan': reads,
  'GET /submissions/{submissionId}/life': reads,
  'GET /submissions/{submissionId}/content': reads,
  'GET /suppressions/noted': reads,
  'POST /suppressions/import': ['suppression.added'],
  'GET /captured': reads,
  'DELETE /captured': { none: 'captured mail is of development and of no organization' },
  'GET /captured/{capturedId}': reads,
  'GET /captured/{capturedId}/source': reads,
  'GET /usage': reads,
  'PATCH /organization': ['organization.renamed'],
  'PATCH /members/{personId}': ['member.role_changed'],
  'POST /invitations': ['member.invited'],
  'DELETE /invitations/{invitationId}': ['member.invitation_withdrawn'],
  'POST /keys': ['key.created'],
  'POST /keys/{keyId}/rotate': ['key.rotated'],
  'DELETE /keys/{keyId}': ['key.revoked'],
}

/**
 * Reading the organization, and leaving it. In these states a member removes only themselves and lists only their own
 * membership.
 */
const readingAndLeaving: Record<string, Recorded> = {
  'GET /members': reads,
  'GET /members/{personId}/made': reads,
  'DELETE /members/{personId}': ['member.removed'],
  'GET /keys': reads,
  'GET /audit': reads,
  'GET /audit.csv': reads,
}

/** Operations of a person, for any organization. */
const ofThePerson: Record<string, Recorded> = {
  'GET /access': reads,
  'POST /sign-up': onlyMails,
  'POST /confirmations': ['session.opened'],
  'GET /session': reads,
  'POST /session': ['session.opened'],
  'DELETE /session': ['session.ended'],
  'POST /session/link': ['session.opened'],
  'POST /session/passkey': ['session.opened'],
  'PUT /session/organization': { none: 'it changes what the person looks at' },
  'GET /sessions': reads,
  'DELETE /sessions': ['sessions.ended'],
  'DELETE /sessions/{sessionId}': ['session.ended'],
  'POST /resets': onlyMails,
  'POST /resets/preview': changesNothing,
  // One key that the person made after proving their address, and did not keep.
  'POST /resets/complete': ['password.changed', 'key.revoked', 'session.opened'],
  'PATCH /person': ['person.renamed'],
  'PUT /person/password': ['password.changed'],
  'GET /passkeys': reads,
  'POST /passkeys': ['passkey.added'],
  'POST /passkeys/registration': changesNothing,
  'POST /passkeys/challenge': changesNothing,
  'DELETE /passkeys/{passkeyId}': ['passkey.removed'],
  'POST /organizations': ['access.asked'],
  'POST /invitations/preview': changesNothing,
  'POST /invitations/accept': ['member.joined', 'session.opened'],
}

/** Desk operations on an organization that is not being deleted. */
const ofTheDeskUntilDeletion: Record<string, Recorded> = {
  'PATCH /organizations/{organizationId}': ['organization.renamed'],
  'PATCH /organizations/{organizationId}/limits': ['organization.limits_changed'],
  'POST /organizations/{organizationId}/approve': ['organization.approved'],
  'POST /organizations/{organizationId}/suspend': ['organization.suspended'],
}

/** Desk operations on any organization. */
const ofTheDesk: Record<string, Recorded> = {
  'GET /organizations/{organizationId}': reads,
  'POST /organizations/{organizationId}/cancel-queue': ['queue.cancelled'],
  'GET /organizations/{organizationId}/deletion': reads,
  'POST /organizations/{organizationId}/deletion': ['organization.deleted'],
}

/** Desk operations on the service. */
const ofTheService: Record<string, Recorded> = {
  'GET /openapi.json': reads,
  'GET /session': reads,
  'POST /session': ['desk.opened'],
  'DELETE /session': { none: 'it closes the desk; a desk closes by itself after a time as well' },
  'GET /organizations': reads,
  'GET /organizations/counts': reads,
  'GET /queues': reads,
  'GET /queues/{queue}': reads,
  'POST /queues/{queue}/pause': ['queue.paused'],
  'POST /queues/{queue}/resume': ['queue.resumed'],
  'POST /queues/{queue}/flush': ['queue.flushed'],
  'POST /queues/{queue}/cancel': ['queue.cancelled'],
  'GET /nodes': reads,
  'GET /numbers': reads,
  'GET /health': reads,
  'POST /health': { none: 'it examines the service and changes nothing' },
  'GET /mail/{kind}': reads,
  'GET /mail/{kind}/{mailId}': reads,
  'GET /mail/{kind}/{mailId}/source': reads,
  'GET /audit': reads,
}

export const rows: readonly OperationRow[] = [
  ...rowsFrom('/v1', each('organization_inactive'), ofTheApi),
  ...rowsFrom('/app/v1', each('organization_inactive'), { ...ofTheApi, ...ofTheOrganization }),
  ...rowsFrom('/app/v1', untilDeletion('organization_inactive'), readingAndLeaving),
  ...rowsFrom('/app/v1', each('allowed'), ofThePerson),
  ...rowsFrom('/desk/v1', untilDeletion('not_found'), ofTheDeskUntilDeletion),
  ...rowsFrom('/desk/v1', each('allowed'), ofTheDesk),
  ...rowsFrom('/desk/v1', each('not theirs'), ofTheService),
]

function rowsFrom(surface: Surface, outcomes: Outcomes, group: Record<string, Recorded>): OperationRow[] {
  return Object.entries(group).map(([operation, recorded]) => {
    const name = operation.replace(' ', ` ${surface}`)
    return { surface, name, outcomes, recorded }
  })
}

export function rowsOf(surface: Surface): OperationRow[] {
  return rows.filter((row) => row.surface === surface)
}

export function rowOf(name: string): OperationRow {
  const row = rows.find((one) => one.name === name)
  assert.ok(row, `tests/support/operations.ts has no ${name}`)
  return row
}

export function actionsOf({ recorded }: Pick<OperationRow, 'recorded'>): readonly Action[] {
  return 'none' in recorded ? [] : recorded
}

/** Asserts that the rows of the surface are these operations, each once. */
export function assertListed(surface: Surface, names: readonly string[]): void {
  const listed = rowsOf(surface).map(({ name }) => name)
  assert.deepEqual(listed.sort(), names.toSorted(), 'tests/support/operations.ts lists every operation')
}

/** Runs the operation once, without concurrent operations. Asserts that it adds exactly the audit entries of its row. */
export async function assertRecorded<Result>(
  db: Queryable,
  name: string,
  run: () => Promise<Result>,
): Promise<Result> {
  const ids = async () => await db.query<{ id: string }>('select id from audit_entry')
  const before = (await ids()).map(({ id }) => id)
  const result = await run()
  const added = await db.query<{ action: Action }>(
    'select action from audit_entry where id <> all($1) order by id',
    [before],
  )
  assert.deepEqual(
    added.map(({ action }) => action),
    actionsOf(rowOf(name)),
    name,
  )
  return result
}
