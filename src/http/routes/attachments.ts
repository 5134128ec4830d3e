// Attachments: the bytes of an attachment that was found clean.
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { findUnscanned, readAttachment } from '../../flow/reading/read-attachment.ts'
import { attachmentDisposition } from '../../web/download-name.ts'
import { sendStream } from '../../web/send-stream.ts'
import type { Api, HttpDeps } from '../api.ts'
import { readmit } from '../caller.ts'
import { readNumber } from '../lists.ts'
import { downloadHeaders } from '../schemas/downloads.ts'
import { AttachmentParams } from '../schemas/params.ts'
import { maxWaitSeconds } from '../stream/message-waits.ts'

const DownloadQuery = Type.Object(
  {
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: maxWaitSeconds,
        default: 0,
        description: 'Seconds to wait for the scan if it is not finished yet.',
      }),
    ),
  },
  { additionalProperties: false },
)

export function attachmentRoutes(api: Api, deps: HttpDeps): void {
  const { blobs, settings } = deps
  api.get(
    '/v1/messages/:messageId/attachments/:attachmentId',
    {
      preValidation: async (request) => readNumber(request, 'wait'),
      config: {
        scope: 'mailbox:read',
        longestWaitMs: maxWaitSeconds * 1_000,
        refusals: [
          ...(['inbox_not_allowed', 'not_found'] as const),
          ...(['attachment_not_clean', 'attachment_too_large', 'attachment_not_scanned'] as const),
        ],
        otherResponses: {
          200: {
            description: 'The decoded bytes.',
            contentType: 'application/octet-stream',
            headers: downloadHeaders,
          },
        },
      },
      schema: {
        operationId: 'downloadAttachment',
        tags: ['Messages'],
        summary: 'Download an attachment',
        description:
          'Only clean attachments can be downloaded. The file name is untrusted. `wait` waits for the scan of mail that has just arrived. Returns 423 while the scan is not finished.',
        params: AttachmentParams,
        querystring: DownloadQuery,
      },
    },
    async (request, reply) => {
      if (request.query.wait) await untilScanned(deps, request, reply)
      const reading = { db: request.db, blobs, maxDownloadBytes: settings.maxDownloadBytes }
      const { filename, sizeBytes, stream } = await readAttachment(reading, request.caller, request.params)
      // A stranger's file must never run as a page of this origin, whatever type a browser guesses.
      reply.headers({
        'content-type': 'application/octet-stream',
        'content-length': sizeBytes,
        'content-disposition': attachmentDisposition(filename),
        'content-security-policy': "default-src 'none'; sandbox",
        'cache-control': 'private, no-store',
      })
      return sendStream(reply, stream)
    },
  )
}

type DownloadRequest = FastifyRequest<{
  Params: Static<typeof AttachmentParams>
  Querystring: Static<typeof DownloadQuery>
}>

/** Resolves once the attachment has a verdict, or the time is over. */
async function untilScanned(
  deps: Pick<HttpDeps, 'clock' | 'authenticate' | 'messageWaits'>,
  request: DownloadRequest,
  { raw: response }: FastifyReply,
): Promise<void> {
  const { caller, params, query, db } = request
  const scanStates = await findUnscanned(db, caller, params)
  if (scanStates === null) return
  const fromMs = performance.now()
  const watched = { messageId: params.messageId, scanStates }
  const waiting = { caller, watched, waitMs: query.wait! * 1_000, response }
  await deps.messageWaits.wait(waiting, async () => {
    await readmit(deps, request)
    return (await findUnscanned(db, request.caller, params)) === null ? true : null
  })
  request.waitedMs = performance.now() - fromMs
}
