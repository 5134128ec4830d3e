// What the pages show of mail beyond what the API gives: its HTML made safe, and what is used of the limits.
import { readPage } from '../../../flow/mailbox/read-page.ts'
import { readUse } from '../../../store/usage.ts'
import type { Api, AppDeps } from '../../api.ts'
import { MessageParams } from '../../schemas/params.ts'
import { Nothing } from '../../schemas/scalars.ts'
import { MailPage, Usage } from '../schemas/mail.ts'

export function mailRoutes(api: Api, deps: AppDeps): void {
  addPage(api, deps)
  addUsage(api, deps)
}

function addPage(api: Api, { db, parsePool }: AppDeps): void {
  api.get(
    '/v1/messages/:messageId/page',
    {
      config: { scope: 'mailbox:read', refusals: ['not_found'] },
      schema: {
        operationId: 'getMessagePage',
        tags: ['Messages'],
        summary: 'Show the HTML of a message, made safe',
        params: MessageParams,
        querystring: Nothing,
        response: { 200: MailPage.ref },
      },
    },
    async ({ caller, params }) => {
      const { html, remoteImages, isCut } = await readPage({ db, parsePool }, caller, params.messageId)
      return { html, remoteImages, cut: isCut }
    },
  )
}

function addUsage(api: Api, { db, clock }: AppDeps): void {
  api.get(
    '/v1/usage',
    {
      config: { scope: null },
      schema: {
        operationId: 'getUsage',
        tags: ['Account'],
        summary: 'Show what is used of the limits',
        querystring: Nothing,
        response: { 200: Usage.ref },
      },
    },
    async ({ caller }) => ({
      limits: caller.limits,
      used: await readUse(db, caller.organizationId, clock.now()),
    }),
  )
}
