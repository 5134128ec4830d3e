// Submissions: list, show, cancel, and their delivery events.
import Type from 'typebox'
import { ServiceError } from '../../base/errors.ts'
import { firstUuidAt, type InboxId, type SubmissionId } from '../../base/ids.ts'
import { type Caller, requireInbox, requireWholeOrganization } from '../../flow/caller.ts'
import { cancelSubmission } from '../../flow/sending/cancel-submission.ts'
import { sameAddressKey } from '../../mail/address.ts'
import type { Queryable } from '../../postgres/db.ts'
import { type EventKey, type EventRow, eventKey, listEvents } from '../../store/events/events.ts'
import { findSubmission, listSubmissions, type SubmissionRow } from '../../store/sending/submissions.ts'
import { submissionStatuses } from '../../store/status.ts'
import type { Api, HttpDeps } from '../api.ts'
import { byId, type Cursors, pageQuery, readLimit } from '../lists.ts'
import { presentEvent, presentSubmission } from '../present.ts'
import { SubmissionParams } from '../schemas/params.ts'
import { Email, GivenTime, InboxIdText, Nothing, oneOf } from '../schemas/scalars.ts'
import { cancelledExample, EventList, Submission, SubmissionList } from '../schemas/submission.ts'

export function submissionRoutes(api: Api, deps: HttpDeps, cursors: Cursors): void {
  addList(api, cursors)
  addShow(api)
  addEvents(api, cursors)
  addCancel(api, deps)
}

const ListQuery = Type.Object(
  {
    ...pageQuery,
    status: Type.Optional(oneOf([...submissionStatuses], 'Only those in this state.')),
    recipient: Type.Optional({ ...Email, description: 'Only submissions to this address.' }),
    since: Type.Optional({ ...GivenTime, description: 'Only submissions at or after this time.' }),
    until: Type.Optional({ ...GivenTime, description: 'Only submissions before this time.' }),
    inboxId: Type.Optional({ ...InboxIdText, description: 'Only submissions from this inbox.' }),
  },
  { additionalProperties: false },
)

function addList(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/submissions',
    {
      preValidation: readLimit,
      config: { scope: 'delivery:read', refusals: ['invalid_cursor', 'inbox_not_allowed'] },
      schema: {
        operationId: 'listSubmissions',
        tags: ['Submissions'],
        summary: 'List submissions',
        description: 'Newest first. A submission must match all given filters.',
        querystring: ListQuery,
        response: { 200: SubmissionList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const { organizationId } = caller
      const name = { list: 'submissions', organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, async (before, limit) => {
        const filter = {
          organizationId,
          inboxIds: inboxesOf(caller, query.inboxId),
          status: query.status ?? null,
          recipientKey: query.recipient === undefined ? null : sameAddressKey(query.recipient),
          sinceId: query.since === undefined ? null : firstUuidAt(Date.parse(query.since)),
          untilId: query.until === undefined ? null : firstUuidAt(Date.parse(query.until)),
        }
        return await listSubmissions(db, filter, before, limit)
      })
      return { submissions: page.map(presentSubmission), nextCursor }
    },
  )
}

/** The inboxes that a list is limited to: the requested one, else those of the key, else all (null). */
function inboxesOf(caller: Caller, inboxId: string | undefined): InboxId[] | null {
  if (inboxId === undefined) return caller.inboxIds
  requireInbox(caller, inboxId as InboxId)
  return [inboxId as InboxId]
}

function addShow(api: Api): void {
  api.get(
    '/v1/submissions/:submissionId',
    {
      config: { scope: 'delivery:read', refusals: ['inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'getSubmission',
        tags: ['Submissions'],
        summary: 'Show a submission',
        description: 'Returns the accepted send and the state of each recipient.',
        params: SubmissionParams,
        querystring: Nothing,
        response: { 200: Submission.ref },
      },
    },
    async ({ caller, params, db }) =>
      presentSubmission(await readSubmission(db, caller, params.submissionId)),
  )
}

/** Returns a submission that the caller may see. */
export async function readSubmission(db: Queryable, caller: Caller, id: string): Promise<SubmissionRow> {
  const submission = await findSubmission(db, caller.organizationId, id)
  if (!submission) throw new ServiceError('not_found', 'There is no such submission.')
  if (submission.inboxId) requireInbox(caller, submission.inboxId)
  else requireWholeOrganization(caller)
  return submission
}

function addEvents(api: Api, cursors: Cursors): void {
  api.get(
    '/v1/submissions/:submissionId/events',
    {
      preValidation: readLimit,
      config: { scope: 'delivery:read', refusals: ['invalid_cursor', 'inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'listSubmissionEvents',
        tags: ['Submissions'],
        summary: 'List the events of a submission',
        description:
          "Every step of every recipient, with the remote server's reply, oldest first. While a destination is blocked, each waiting recipient that was not attempted has one event `deferred` without an attempt. It gives the reason and disappears once the destination is no longer blocked.",
        params: SubmissionParams,
        querystring: Type.Object(pageQuery, { additionalProperties: false }),
        response: { 200: EventList.ref },
      },
    },
    async ({ caller, params, query, db }) => {
      const id = params.submissionId.toLowerCase() as SubmissionId
      const name = { list: `events ${id}`, organizationId: caller.organizationId }
      const { page, nextCursor } = await cursors.page(name, query, keyOf, async (after, limit) => {
        await readSubmission(db, caller, id)
        return await listEvents(db, id, readKey(after), limit)
      })
      return { events: page.map((row) => presentEvent(row, id)), nextCursor }
    },
  )
}

function keyOf(event: EventRow): string {
  const { seq, since, ordinal } = eventKey(event)
  return `${seq} ${since} ${ordinal}`
}

function readKey(key: string | null): EventKey | null {
  if (key === null) return null
  const [seq, since, ordinal] = key.split(' ').map(Number)
  return { seq: seq!, since: since!, ordinal: ordinal! }
}

function addCancel(api: Api, { db, clock }: HttpDeps): void {
  api.post(
    '/v1/submissions/:submissionId/cancel',
    {
      config: {
        scope: ['mailbox:send', 'delivery:send'],
        refusals: ['inbox_not_allowed', 'not_found', 'delivery_in_progress'],
        examples: { response: { cancelled: cancelledExample } },
      },
      schema: {
        operationId: 'cancelSubmission',
        tags: ['Submissions'],
        summary: 'Cancel a submission',
        description:
          'Waiting recipients become failed. Attempts in progress are completed. Returns 409 `delivery_in_progress` if no recipient waits and an attempt is in progress. A finished submission is returned unchanged, so a repeated cancel returns 200.',
        params: SubmissionParams,
        querystring: Nothing,
        response: { 200: Submission.ref },
      },
    },
    async ({ caller, params }) =>
      presentSubmission(await cancelSubmission({ db, clock }, caller, params.submissionId)),
  )
}
