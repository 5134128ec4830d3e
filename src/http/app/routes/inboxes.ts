// Inbox operations that the API lacks: renaming an inbox.
import { renameInbox } from '../../../flow/mailbox/rename-inbox.ts'
import type { Api, AppDeps } from '../../api.ts'
import { presentInbox } from '../../present.ts'
import { Inbox } from '../../schemas/inbox.ts'
import { InboxParams } from '../../schemas/params.ts'
import { Nothing } from '../../schemas/scalars.ts'
import { InboxName } from '../schemas/mail.ts'

export function appInboxRoutes(api: Api, { db, clock }: AppDeps): void {
  api.patch(
    '/v1/inboxes/:inboxId',
    {
      config: { scope: 'mailbox:manage', refusals: ['inbox_not_allowed', 'not_found'] },
      schema: {
        operationId: 'renameInbox',
        tags: ['Inboxes'],
        summary: 'Rename an inbox',
        description: 'Sent mail keeps the earlier name.',
        params: InboxParams,
        querystring: Nothing,
        body: InboxName.ref,
        response: { 200: Inbox.ref },
      },
    },
    async ({ caller, params, body }) =>
      presentInbox(await renameInbox({ db, clock }, caller, params.inboxId, body.displayName)),
  )
}
