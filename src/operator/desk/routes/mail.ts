// Mail at the desk: captured mail, and mail for the service's own addresses.

import { pageOf } from '../../../base/page-of.ts'
import { listOperatorMail, openOperatorMail, readOperatorMail } from '../../../flow/reading/operator-mail.ts'
import { attachmentDisposition } from '../../../web/download-name.ts'
import { sendStream } from '../../../web/send-stream.ts'
import type { Desk, DeskDeps } from '../deps.ts'
import { presentHead, presentWhole } from '../present-mail.ts'
import { Mail, MailKindParams, MailList, MailParams, MailQuery } from '../schemas/mail.ts'

const pageLength = 50

export function mailRoutes(desk: Desk, deps: DeskDeps): void {
  addList(desk, deps)
  addShow(desk, deps)
  addSource(desk, deps)
}

function addList(desk: Desk, deps: DeskDeps): void {
  desk.get(
    '/desk/v1/mail/:kind',
    { schema: { params: MailKindParams, querystring: MailQuery, response: { 200: MailList } } },
    async ({ params: { kind }, query: { cursor } }) => {
      const rows = await listOperatorMail(deps, kind, { beforeId: cursor ?? null, limit: pageLength + 1 })
      const { page, nextCursor } = pageOf(rows, pageLength)
      return {
        mails: page.map(presentHead),
        nextCursor,
        isFilled: kind === 'kept' || deps.settings.delivery === 'capture',
      }
    },
  )
}

function addShow(desk: Desk, deps: DeskDeps): void {
  desk.get(
    '/desk/v1/mail/:kind/:mailId',
    { schema: { params: MailParams, response: { 200: Mail } } },
    async ({ params: { kind, mailId } }) => presentWhole(await readOperatorMail(deps, kind, mailId)),
  )
}

function addSource(desk: Desk, deps: DeskDeps): void {
  desk.get(
    '/desk/v1/mail/:kind/:mailId/source',
    { schema: { params: MailParams } },
    async ({ params: { kind, mailId } }, reply) => {
      const { sizeBytes, stream } = await openOperatorMail(deps, kind, mailId)
      reply.headers({
        'content-type': 'message/rfc822',
        'content-length': sizeBytes,
        'content-disposition': attachmentDisposition(`${mailId}.eml`),
        'content-security-policy': "default-src 'none'; sandbox",
      })
      return sendStream(reply, stream)
    },
  )
}
