// Builds the OpenAPI document at /openapi.json from the schemas that validate and serialize.
import swagger from '@fastify/swagger'
import type { FastifyContextConfig, FastifySchema } from 'fastify'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Scope } from '../../flow/caller.ts'
import { type Asset, makeAsset, sendAsset, untilChanged } from '../../web/asset.ts'
import type { Api, OtherResponse } from '../api.ts'
import { scopesOf } from '../caller.ts'
import type { ErrorCode } from '../errors.ts'
import { abridge, finishDocument, type OpenApiDocument, type OperationNotes } from './document.ts'
import { appIntroduction, introduction, keyDescription, sessionDescription, tags } from './introduction.ts'
import { shareParameters, shareSchemas } from './share.ts'

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
// For operations that need a session: without one there is no rate to count against.
const sessionCodes: ErrorCode[] = [
  'session_required',
  'organization_inactive',
  'insufficient_scope',
  'rate_limited',
]
const appCodes: ErrorCode[] = [
  ...commonCodes.filter((code) => code !== 'unauthorized'),
  ...(['session_required', 'wrong_origin'] as const),
]

/** Collects the API's document from the routes that are added later, with the schemas of these names. */
export function addOpenApi(api: Api, publicUrl: string, schemaNames: readonly string[]): void {
  const key = { type: 'apiKey', in: 'header', name: 'x-api-key', description: keyDescription } as const
  collect(api, {
    decorator: 'swagger',
    about: { title: 'Posthorn', description: introduction, publicUrl },
    security: { apiKey: key },
    finish: (document) => document,
    // The dashboard's own operations have a separate document.
    isPublished: (url) => !url.startsWith('/app/'),
    isSchema: (name) => schemaNames.includes(name),
    headOf: ({ scope = null }) => writeScopes(scopesOf(scope)),
    usualCodes: commonCodes,
    codesOf: ({ scope }) =>
      scope ? commonCodes : commonCodes.filter((code) => code !== 'insufficient_scope'),
  })
}

/** Collects the document of the operations that the pages call: the API's behind a session, and the dashboard's own. */
export function addAppDocument(api: Api, publicUrl: string): void {
  const session = {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-posthorn',
    description: sessionDescription,
  } as const
  collect(api, {
    decorator: 'appDocument' as 'swagger',
    about: { title: 'Posthorn, as its dashboard calls it', description: appIntroduction, publicUrl },
    security: { session },
    finish: abridge,
    isPublished: () => true,
    isSchema: () => true,
    headOf: () => '',
    usualCodes: appCodes,
    codesOf: ({ session }) => appCodes.filter((code) => session !== 'none' || !sessionCodes.includes(code)),
  })
}

interface Collected {
  decorator: 'swagger'
  about: { title: string; description: string; publicUrl: string }
  security: Record<string, { type: 'apiKey'; in: 'header' | 'cookie'; name: string; description: string }>
  /** Returns the document as its readers get it. */
  finish(document: OpenApiDocument): OpenApiDocument
  isPublished(url: string): boolean
  isSchema(name: string): boolean
  /** The beginning of an operation's description. */
  headOf(config: FastifyContextConfig): string
  /** Codes that nearly every operation can answer with. */
  usualCodes: readonly ErrorCode[]
  /** Codes that every operation of this kind can answer with. */
  codesOf(config: FastifyContextConfig): ErrorCode[]
}

function collect(api: Api, collected: Collected): void {
  const { decorator, about, security: schemes, isSchema, usualCodes } = collected
  const notes = new Map<string, OperationNotes>()
  const { title, description, publicUrl } = about
  api.register(swagger, {
    decorator,
    openapi: {
      openapi: '3.1.0',
      info: {
        title,
        version: packageJson.version,
        description,
        contact: { name: 'The operator of this service', ...(publicUrl && { url: publicUrl }) },
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: publicUrl || '/' }],
      components: { securitySchemes: schemes },
      tags,
    },
    refResolver: { buildLocalReference: ({ $id }, _base, _fragment, index) => String($id ?? `def-${index}`) },
    transform: ({ schema, url, route }) => {
      const config: FastifyContextConfig = route.config ?? {}
      if (schema.hide || !collected.isPublished(url)) return { schema: { ...schema, hide: true }, url }
      notes.set(String(schema.operationId), notesOf(schema, config, collected))
      return { schema: describeOperation(schema, config, collected), url }
    },
    transformObject: (made) => {
      const written = ('openapiObject' in made ? made.openapiObject : made.swaggerObject) as unknown
      const document = written as OpenApiDocument
      const schemas = Object.entries(document.components.schemas ?? {})
      document.components.schemas = Object.fromEntries(schemas.filter(([name]) => isSchema(name)))
      const whole = finishDocument(document, notes, usualCodes)
      // Before `finish`, which may drop examples: equal schemas are found by comparing them with their examples.
      shareSchemas(whole)
      return shareParameters(collected.finish(whole)) as object
    },
  })
}

function notesOf(
  schema: FastifySchema,
  config: FastifyContextConfig,
  { codesOf }: Collected,
): OperationNotes {
  const { refusals = [], otherResponses = {}, examples = {}, callbacks } = config
  const others = Object.values(otherResponses).map((other) => other.headers)
  return {
    codes: [...codesOf(config), ...(schema.body ? bodyCodes : []), ...refusals],
    examples,
    headers: Object.assign({}, config.headers, ...others),
    callbacks,
  }
}

function describeOperation(
  schema: FastifySchema,
  config: FastifyContextConfig,
  { security: schemes, headOf }: Collected,
): FastifySchema {
  const { scope, otherResponses = {} } = config
  const [scheme] = Object.keys(schemes)
  const response = { ...(schema.response as object), ...describeOthers(otherResponses) }
  const scopes = scopesOf(scope ?? null)
  const description = [headOf(config), schema.description].filter(Boolean).join('\n\n')
  const described = { ...schema, ...(description !== '' && { description }) }
  const security = config.session === 'none' ? [] : [{ [scheme!]: [] }]
  // OpenAPI 3.1 lets `security` name them too, but linters know scopes only of OAuth.
  return { ...described, response, security, 'x-scopes': scopes } as FastifySchema
}

/** Describes the scopes in words, because readers expect them in the description, not at the key. */
function writeScopes(scopes: readonly Scope[]): string {
  if (scopes.length === 0) return 'Scope: none, any key will do.'
  return `Scope: ${scopes.map((scope) => `\`${scope}\``).join(' or ')}.`
}

function describeOthers(responses: Record<number, OtherResponse>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, contentType, schema }]) => {
      if (contentType === null) return [status, { description, type: 'null' }]
      const format = contentType.startsWith('text/') ? {} : { format: 'binary' }
      const described = schema ?? { type: 'string', ...format }
      return [status, { description, content: { [contentType]: { schema: described } } }]
    }),
  )
}

/** Serves the document to anyone. */
export function serveOpenApi(api: Api): void {
  serve(api, '/openapi.json', () => api.swagger())
}

/** Serves the document of the operations that the pages call, under their prefix. */
export function serveAppDocument(api: Api): void {
  serve(api, '/openapi.json', () => (api as unknown as { appDocument(): object }).appDocument())
}

function serve(api: Api, path: string, write: () => object): void {
  let written: Promise<Asset> | undefined
  api.get(path, { schema: { hide: true } }, async (request, reply) => {
    written ??= makeAsset('application/json; charset=utf-8', JSON.stringify(write()))
    return sendAsset(request, reply, await written, untilChanged)
  })
}
