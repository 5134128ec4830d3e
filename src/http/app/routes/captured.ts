// Captured mail as a mailbox: mail that would have left a development deployment.
import Type from 'typebox'
import {
  clearCaptured,
  listOperatorMail,
  type OperatorMail,
  openCaptured,
  readCaptured,
} from '../../../flow/reading/operator-mail.ts'
import { sendStream } from '../../../web/send-stream.ts'
import type { Api, AppDeps } from '../../api.ts'
import { byId, Cursors, pageQuery, readLimit } from '../../lists.ts'
import { downloadHeaders } from '../../schemas/downloads.ts'
import { Nothing, Uuid } from '../../schemas/scalars.ts'
import { CapturedList, CapturedMail } from '../schemas/mail.ts'

const tags = ['Captured mail']
const scope = 'mailbox:read'
const CapturedParams = Type.Object({ capturedId: Uuid })
const PageQuery = Type.Object(pageQuery, { additionalProperties: false })

/** Only in development: the machine's user sees all captured mail, whatever organization sent it. */
export function capturedRoutes(api: Api, deps: AppDeps): void {
  addList(api, deps)
  addShow(api, deps)
  addSource(api, deps)
  addClear(api, deps)
}

function addClear(api: Api, { db, blobs }: AppDeps): void {
  api.delete(
    '/v1/captured',
    {
      config: {
        scope: 'mailbox:manage',
        refusals: [],
        otherResponses: { 204: { description: 'All captured mail is deleted.', contentType: null } },
      },
      schema: {
        operationId: 'clearCaptured',
        tags,
        summary: 'Delete all captured mail',
        querystring: Nothing,
      },
    },
    async (_request, reply) => {
      await clearCaptured({ db, blobs })
      return reply.code(204).send()
    },
  )
}

function addList(api: Api, { blobs, secretBox }: AppDeps): void {
  const cursors = new Cursors(secretBox)
  api.get(
    '/v1/captured',
    {
      preValidation: readLimit,
      config: { scope, refusals: ['invalid_cursor'] },
      schema: {
        operationId: 'listCaptured',
        tags,
        summary: 'List captured mail',
        querystring: PageQuery,
        response: { 200: CapturedList.ref },
      },
    },
    async ({ caller, query, db }) => {
      const name = { list: 'captured', organizationId: caller.organizationId }
      const { page, nextCursor } = await cursors.page(name, query, byId, (beforeId, limit) =>
        listOperatorMail({ db, blobs }, 'captured', { beforeId, limit }),
      )
      return { captured: page.map(present), nextCursor }
    },
  )
}

function addShow(api: Api, { blobs, parsePool }: AppDeps): void {
  api.get(
    '/v1/captured/:capturedId',
    {
      config: { scope, refusals: ['not_found'] },
      schema: {
        operationId: 'getCaptured',
        tags,
        summary: 'Show a captured mail',
        params: CapturedParams,
        querystring: Nothing,
        response: { 200: CapturedMail.ref },
      },
    },
    async ({ params, db }) => {
      const { mail, parsed, page } = await readCaptured({ db, blobs, parsePool }, params.capturedId)
      const { to, cc, text, attachments } = parsed
      return {
        ...present(mail),
        to,
        cc,
        text,
        html: page?.html ?? null,
        remoteImages: page?.remoteImages ?? 0,
        attachments: attachments.map(({ filename, contentType, sizeBytes: size }) => ({
          filename,
          contentType,
          size,
        })),
      }
    },
  )
}

function addSource(api: Api, { blobs }: AppDeps): void {
  api.get(
    '/v1/captured/:capturedId/source',
    {
      config: {
        scope,
        refusals: ['not_found'],
        otherResponses: {
          200: { description: 'The mail as sent.', contentType: 'message/rfc822', headers: downloadHeaders },
        },
      },
      schema: {
        operationId: 'getCapturedSource',
        tags,
        summary: 'Download a captured mail',
        params: CapturedParams,
        querystring: Nothing,
      },
    },
    async ({ params, db }, reply) => {
      const { sizeBytes, stream } = await openCaptured({ db, blobs }, params.capturedId)
      reply.headers({
        'content-type': 'message/rfc822',
        'content-length': sizeBytes,
        'content-disposition': `attachment; filename="${params.capturedId}.eml"`,
        'content-security-policy': "default-src 'none'; sandbox",
        'cache-control': 'private, no-store',
      })
      return sendStream(reply, stream)
    },
  )
}

function present({ id, sender, recipients, sizeBytes, from, subject, at }: OperatorMail) {
  return { id, sender, recipients, from, subject, sizeBytes, capturedAt: at.toISOString() }
}
