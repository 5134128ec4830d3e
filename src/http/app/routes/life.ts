// Details of a submission that the API lacks: its pending steps, its SMTP conversations, and its content.
import type { FairLimit } from '../../../base/fair-limit.ts'
import { readSentContent } from '../../../flow/sending/read-sent-content.ts'
import { readConversation } from '../../../store/sending/conversation.ts'
import { findThreadOf, listExchanges, listOutlooks } from '../../../store/sending/submission-life.ts'
import type { Api, AppDeps } from '../../api.ts'
import { readSubmission } from '../../routes/submissions.ts'
import { SubmissionParams } from '../../schemas/params.ts'
import { Nothing } from '../../schemas/scalars.ts'
import { SubmissionContent, SubmissionLife } from '../schemas/sending.ts'

const mostExchanges = 1_000

export function lifeRoutes(api: Api, deps: AppDeps & { htmlLimit: FairLimit }): void {
  addLife(api)
  addContent(api, deps)
}

function addLife(api: Api): void {
  api.get(
    '/v1/submissions/:submissionId/life',
    {
      config: { scope: 'delivery:read', refusals: ['inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'getSubmissionLife',
        tags: ['Submissions'],
        summary: 'Show the pending steps and SMTP conversations of a submission',
        params: SubmissionParams,
        querystring: Nothing,
        response: { 200: SubmissionLife.ref },
      },
    },
    async ({ caller, params, db }) => {
      const { id, inboxId, messageId } = await readSubmission(db, caller, params.submissionId)
      const [outlooks, found, threadId] = await Promise.all([
        listOutlooks(db, id),
        listExchanges(db, id, mostExchanges),
        messageId === null ? null : findThreadOf(db, messageId),
      ])
      const recipients = outlooks.map(({ isOnWire, isPaused, nextAttemptAt, givenUpAt, ...rest }) => ({
        ...rest,
        onWire: isOnWire,
        paused: isPaused,
        nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
        givenUpAt: givenUpAt?.toISOString() ?? null,
      }))
      const exchanges = found.map(({ conversation, ...exchange }) => ({
        ...exchange,
        conversation: readConversation(conversation),
      }))
      return { inboxId, threadId, messageId: threadId && messageId, recipients, exchanges }
    },
  )
}

function addContent(
  api: Api,
  { parsePool, htmlLimit, sentContentMs }: AppDeps & { htmlLimit: FairLimit },
): void {
  api.get(
    '/v1/submissions/:submissionId/content',
    {
      config: { scope: 'delivery:read', refusals: ['inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'getSubmissionContent',
        tags: ['Submissions'],
        summary: 'Show the content of a send without an inbox',
        params: SubmissionParams,
        querystring: Nothing,
        response: { 200: SubmissionContent.ref },
      },
    },
    async ({ caller, params, db }) => {
      const submission = await readSubmission(db, caller, params.submissionId)
      const found = await readSentContent({ db, parsePool, htmlLimit }, submission)
      if (!found) return { content: null }
      const { recipients, text, page, isCut, createdAt } = found
      const { to, replyTo } = recipients
      return {
        content: {
          to,
          replyTo: replyTo ?? null,
          text,
          html: page?.html ?? null,
          remoteImages: page?.remoteImages ?? 0,
          cut: isCut,
          keptUntil: new Date(createdAt.getTime() + sentContentMs).toISOString(),
        },
      }
    },
  )
}
