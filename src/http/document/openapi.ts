// The OpenAPI document, out of the same schemas that validate and serialize; at /openapi.json.
import swagger from '@fastify/swagger'
import type { FastifySchema } from 'fastify'
import type { Api, OtherResponse } from '../api.ts'
import { scopesOf } from '../caller.ts'
import type { ErrorCode } from '../errors.ts'
import { type Asset, makeAsset, sendAsset, untilChanged } from './asset.ts'
import { finishDocument, type OpenApiDocument, type OperationNotes } from './document.ts'
import { introduction, keyDescription, tags } from './introduction.ts'

// Every operation can answer with these.
const commonCodes: ErrorCode[] = [
  ...([
    'invalid_request',
    'unauthorized',
    'insufficient_scope',
    'organization_inactive',
    'rate_limited',
  ] as const),
  ...(['internal_error', 'unavailable'] as const),
]
const bodyCodes: ErrorCode[] = ['invalid_json', 'payload_too_large']

/** Collects the document from the routes that are added after it. */
export function addOpenApi(api: Api, publicUrl: string): void {
  const notes = new Map<string, OperationNotes>()
  api.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Posthorn',
        version: '0.1.0-private-beta',
        description: introduction,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: publicUrl || '/' }],
      components: {
        securitySchemes: {
          apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: keyDescription },
        },
      },
      tags,
    },
    refResolver: { buildLocalReference: ({ $id }, _base, _fragment, index) => String($id ?? `def-${index}`) },
    transform: ({ schema, url, route }) => {
      const { scope, refusals = [], otherResponses = {}, examples = {} } = route.config ?? {}
      if (schema.hide) return { schema, url }
      const headers = Object.assign({}, ...Object.values(otherResponses).map((other) => other.headers))
      // Where any key will do, none lacks a scope.
      const common = scope ? commonCodes : commonCodes.filter((code) => code !== 'insufficient_scope')
      notes.set(String(schema.operationId), {
        codes: [...common, ...(schema.body ? bodyCodes : []), ...refusals],
        examples,
        headers,
      })
      const response = { ...(schema.response as object), ...describeOthers(otherResponses) }
      // OpenAPI 3.1 names the scope beside the key.
      const scopes = scopesOf(scope ?? null)
      const security = scopes.length > 0 ? scopes.map((one) => ({ apiKey: [one] })) : [{ apiKey: [] }]
      return { schema: { ...schema, response, security } as FastifySchema, url }
    },
    transformObject: (made) => {
      const document = ('openapiObject' in made ? made.openapiObject : made.swaggerObject) as unknown
      return finishDocument(document as OpenApiDocument, notes) as object
    },
  })
}

function describeOthers(responses: Record<number, OtherResponse>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, contentType }]) => {
      if (contentType === null) return [status, { description, type: 'null' }]
      const format = contentType.startsWith('text/') ? {} : { format: 'binary' }
      return [status, { description, content: { [contentType]: { schema: { type: 'string', ...format } } } }]
    }),
  )
}

/** Serves the document to anyone. */
export function serveOpenApi(api: Api): void {
  let written: Promise<Asset> | undefined
  // RFC 9110 9.3.2: what answers GET answers HEAD.
  api.get('/openapi.json', { schema: { hide: true }, exposeHeadRoute: true }, async (request, reply) => {
    written ??= makeAsset('application/json; charset=utf-8', JSON.stringify(api.swagger()))
    return sendAsset(request, reply, await written, untilChanged)
  })
}
