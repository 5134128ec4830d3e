// Mail operations that the API lacks: safe HTML, the recipients of a reply, and the current use of limits.
import type { FairLimit } from '../../../base/fair-limit.ts'
import { readInbox, readMessage } from '../../../flow/reading/read-mailbox.ts'
import { readPage } from '../../../flow/reading/read-page.ts'
import { replyRecipients, replySubject } from '../../../flow/sending/reply-draft.ts'
import { readUse } from '../../../store/accounts/usage.ts'
import type { Api, AppDeps } from '../../api.ts'
import { MessageParams } from '../../schemas/params.ts'
import { Nothing } from '../../schemas/scalars.ts'
import { MailPage, ReplyPlan, Usage } from '../schemas/mail.ts'

type MailDeps = AppDeps & { htmlLimit: FairLimit }

export function mailRoutes(api: Api, deps: MailDeps): void {
  addPage(api, deps)
  addReplyPlan(api)
  addUsage(api, deps)
}

function addPage(api: Api, { parsePool, htmlLimit }: MailDeps): void {
  api.get(
    '/v1/messages/:messageId/page',
    {
      config: { scope: 'mailbox:read', refusals: ['not_found'] },
      schema: {
        operationId: 'getMessagePage',
        tags: ['Messages'],
        summary: 'Show the sanitized HTML of a message',
        params: MessageParams,
        querystring: Nothing,
        response: { 200: MailPage.ref },
      },
    },
    async ({ caller, params, db }) => {
      const { html, remoteImages, isCut } = await readPage(
        { db, parsePool, htmlLimit },
        caller,
        params.messageId,
      )
      return { html, remoteImages, cut: isCut }
    },
  )
}

function addReplyPlan(api: Api): void {
  api.get(
    '/v1/messages/:messageId/reply-plan',
    {
      config: { scope: 'mailbox:read', refusals: ['inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'getReplyPlan',
        tags: ['Messages'],
        summary: 'Show the recipients of a reply',
        params: MessageParams,
        querystring: Nothing,
        response: { 200: ReplyPlan.ref },
      },
    },
    async ({ caller, params, db }) => {
      const message = await readMessage(db, caller, params.messageId)
      const { localPart, domain } = await readInbox(db, caller, message.inboxId)
      const address = `${localPart}@${domain}`
      return {
        subject: replySubject(message.subject),
        sender: replyRecipients(message, address, 'sender'),
        all: replyRecipients(message, address, 'all'),
      }
    },
  )
}

function addUsage(api: Api, { clock }: AppDeps): void {
  api.get(
    '/v1/usage',
    {
      config: { scope: null },
      schema: {
        operationId: 'getUsage',
        tags: ['Account'],
        summary: 'Show the usage of the limits',
        querystring: Nothing,
        response: { 200: Usage.ref },
      },
    },
    async ({ caller, db }) => ({
      limits: caller.limits,
      used: await readUse(db, caller.organizationId, clock.now()),
    }),
  )
}
