// Attachments: the bytes of one that was found clean.
import { readAttachment } from '../../flow/mailbox/read-attachment.ts'
import { attachmentDisposition } from '../../web/download-name.ts'
import { sendStream } from '../../web/send-stream.ts'
import type { Api, HttpDeps } from '../api.ts'
import { downloadHeaders } from '../schemas/downloads.ts'
import { AttachmentParams } from '../schemas/params.ts'
import { Nothing } from '../schemas/scalars.ts'

export function attachmentRoutes(api: Api, { db, blobs, settings }: HttpDeps): void {
  api.get(
    '/v1/messages/:messageId/attachments/:attachmentId',
    {
      config: {
        scope: 'mailbox:read',
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
        description: 'Only one that was scanned and found clean. Its name is untrusted, for display.',
        params: AttachmentParams,
        querystring: Nothing,
      },
    },
    async ({ caller, params }, reply) => {
      const deps = { db, blobs, maxDownloadBytes: settings.maxDownloadBytes }
      const { filename, sizeBytes, stream } = await readAttachment(deps, caller, params)
      // A stranger's file must never run as a page of this origin, whatever a browser takes it for.
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
