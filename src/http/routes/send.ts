// Sends through a domain, without an inbox.
import type { Api, HttpDeps } from '../api.ts'
import { presentAcceptedSend } from '../present.ts'
import { IdempotencyHeaders } from '../schemas/params.ts'
import { Nothing } from '../schemas/scalars.ts'
import { NewSend, SendAcceptance } from '../schemas/send.ts'
import { idempotencyOf, sendRefusals } from './sending.ts'

/** These two codes cannot occur: the path has no id, and a send without an inbox has no message that could be deleted. */
const refusals = sendRefusals.filter((code) => code !== 'not_found' && code !== 'idempotency_result_expired')

/** Fields that only a send from an inbox accepts. The error for them names that operation. */
const elsewhere = { names: ['attachments', 'cc', 'bcc'], operation: 'POST /v1/inboxes/{inboxId}/messages' }

export function sendRoutes(api: Api, { acceptance }: HttpDeps): void {
  api.post(
    '/v1/send',
    {
      config: { scope: 'delivery:send', largestBody: 'message', refusals, elsewhere },
      schema: {
        operationId: 'send',
        tags: ['Submissions'],
        summary: 'Send a message without an inbox',
        description:
          'Returns 202 once the submission is on disk. The message is not stored in an inbox and is kept only until it is delivered. For attachments, cc or bcc, send from an inbox.',
        querystring: Nothing,
        headers: IdempotencyHeaders,
        body: NewSend.ref,
        response: { 202: SendAcceptance.ref },
      },
    },
    async (request, reply) => {
      const { body, caller } = request
      const accepted = await acceptance.acceptFromDomain(caller, body, idempotencyOf(request))
      reply.code(202)
      return presentAcceptedSend(accepted)
    },
  )
}
