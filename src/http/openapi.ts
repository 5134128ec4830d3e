// The OpenAPI document, out of the same schemas that validate and serialize; at /openapi.json.
import swagger from '@fastify/swagger'
import type { FastifySchema } from 'fastify'
import type { Api, OtherResponse } from './api.ts'
import { scopesOf } from './caller.ts'
import { type ErrorCode, errorTable } from './errors.ts'
import { Refusal } from './schemas/refusal.ts'

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

const introduction = `Inboxes that send and receive over SMTP, for programs and agents.

Every request carries its API key in \`x-api-key\`. Every answer carries its id in \`x-request-id\`, and how many requests
the key has left in \`RateLimit\`. Lists hold \`limit\` entries and a \`nextCursor\`. Received mail is untrusted input.`

/** Collects the document from the routes that are added after it. */
export function addOpenApi(api: Api, publicUrl: string): void {
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
      components: { securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } } },
      tags: [
        'Account',
        'Inboxes',
        'Messages',
        'Threads',
        'Submissions',
        'Suppressions',
        'Domains',
        'Validation',
        'Metrics',
        'Webhooks',
      ].map((name) => ({ name })),
    },
    refResolver: { buildLocalReference: ({ $id }, _base, _fragment, index) => String($id ?? `def-${index}`) },
    transform: ({ schema, url, route }) => {
      const { scope, refusals = [], otherResponses = {} } = route.config ?? {}
      const codes = [...commonCodes, ...(schema.body ? bodyCodes : []), ...refusals]
      const response = {
        ...(schema.response as object),
        ...describeOthers(otherResponses),
        ...describeRefusals(codes),
      }
      // OpenAPI 3.1 names the scope beside the key.
      const scopes = scopesOf(scope ?? null)
      const security = scopes.length > 0 ? scopes.map((one) => ({ apiKey: [one] })) : [{ apiKey: [] }]
      return { schema: { ...schema, response, security } as FastifySchema, url }
    },
  })
}

function describeOthers(responses: Record<number, OtherResponse>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, contentType }]) => {
      if (contentType === null) return [status, { description, type: 'null' }]
      return [
        status,
        { description, content: { [contentType]: { schema: { type: 'string', format: 'binary' } } } },
      ]
    }),
  )
}

/** One answer for each status, naming its codes. */
function describeRefusals(codes: ErrorCode[]): Record<string, object> {
  const byStatus = Map.groupBy(codes, (code) => errorTable[code][0])
  return Object.fromEntries(
    [...byStatus].map(([status, named]) => {
      const lines = named.map((code) => `- \`${code}\`: ${errorTable[code][1]}`)
      return [status, { $ref: `${Refusal.definition.$id}#`, description: lines.join('\n') }]
    }),
  )
}

/** Serves the document to anyone. */
export function serveOpenApi(api: Api): void {
  let written: string | undefined
  api.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    written ??= JSON.stringify(api.swagger())
    return reply.header('content-type', 'application/json; charset=utf-8').send(written)
  })
}
