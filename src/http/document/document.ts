// Finishes the OpenAPI document with what the schemas of routes cannot say: errors by code, headers, examples.
import { type ErrorCode, errorTable } from '../errors.ts'
import { webhooks } from '../schemas/announcement.ts'
import { Refusal } from '../schemas/refusal.ts'

/** Examples by the name that a reader chooses them by. */
export type Examples = Readonly<Record<string, unknown>>

/** What the document says of an operation beyond its schemas. */
export interface OperationNotes {
  /** Every code that it can answer with. */
  codes: ErrorCode[]
  /** Of its request and of its success, in place of those of their schemas. */
  examples: { request?: Examples; response?: Examples }
  /** The headers of its success that are its own, each with what it holds. */
  headers: Readonly<Record<string, string>>
}

interface Media {
  schema: { $ref?: string }
  examples?: Record<string, { summary?: string; value: unknown }>
}

interface Response {
  description: string
  headers?: Record<string, object>
  content?: Record<string, Media>
}

interface Operation {
  operationId: string
  parameters?: { schema: { examples?: unknown[] }; example?: unknown }[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, Response>
}

export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>
  webhooks?: object
  components: { schemas?: Record<string, { examples?: unknown[] }>; headers?: Record<string, object> }
}

const header = (description: string, schema: object, example: unknown) => ({ description, schema, example })
const text = { type: 'string' }

/** The headers that many answers have. */
const commonHeaders: Readonly<Record<string, object>> = {
  'x-request-id': header('The id of this request, as logs have it.', text, 'Qm3x8Zb1Yt0k1a'),
  'RateLimit-Policy': header(
    'How many requests the key has (q) in how many seconds (w).',
    text,
    '"requests";q=600;w=60',
  ),
  RateLimit: header(
    'How many of them are left (r), and in how many seconds all are back (t).',
    text,
    '"requests";r=599;t=42',
  ),
  'retry-after': header('In how many seconds to try again.', { type: 'integer', minimum: 1 }, 2),
}

/** Adds to every operation its errors, headers and examples; `notes` are found by operation id. */
export function finishDocument(
  document: OpenApiDocument,
  notes: ReadonlyMap<string, OperationNotes>,
): OpenApiDocument {
  const schemas = document.components.schemas ?? {}
  document.components.headers = { ...commonHeaders }
  for (const operation of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    const { codes, examples, headers } = notes.get(operation.operationId)!
    for (const media of Object.values(operation.requestBody?.content ?? {}))
      giveExamples(media, examples.request, schemas)
    for (const [status, response] of Object.entries(operation.responses)) {
      for (const media of Object.values(response.content ?? {}))
        giveExamples(media, examples.response, schemas)
      response.headers = { ...headersOf(Number(status)), ...describeHeaders(headers) }
    }
    Object.assign(operation.responses, describeRefusals(codes))
  }
  document.webhooks = webhooks
  return document
}

/** A media type's examples: its own, else those of the schema that it refers to. */
function giveExamples(
  media: Media,
  own: Examples | undefined,
  schemas: Record<string, { examples?: unknown[] }>,
): void {
  const [ofSchema] = schemas[media.schema.$ref?.split('/').at(-1) ?? '']?.examples ?? []
  const named = own ?? (ofSchema === undefined ? {} : { example: ofSchema })
  if (Object.keys(named).length === 0) return
  media.examples = Object.fromEntries(Object.entries(named).map(([name, value]) => [name, { value }]))
}

function headersOf(status: number): Record<string, object> {
  const names = ['x-request-id']
  // Who is not known has no rate; and a database that is away does not say.
  if (status !== 401 && status !== 503) names.push('RateLimit-Policy', 'RateLimit')
  if (status === 429 || status === 503) names.push('retry-after')
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

function describeHeaders(headers: Readonly<Record<string, string>>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: text }]),
  )
}

/** One answer for each status, naming its codes, with an example of each. */
function describeRefusals(codes: ErrorCode[]): Record<string, Response> {
  const byStatus = Map.groupBy(codes, (code) => errorTable[code][0])
  return Object.fromEntries([...byStatus].map(([status, named]) => [status, describeRefusal(status, named)]))
}

function describeRefusal(status: number, codes: ErrorCode[]): Response {
  const lines = codes.map((code) => `- \`${code}\`: ${errorTable[code][1]}`)
  const schema = {
    allOf: [
      { $ref: `#/components/schemas/${Refusal.definition.$id}` },
      { type: 'object', required: ['error'], properties: { error: { type: 'string', enum: codes } } },
    ],
  }
  const examples = Object.fromEntries(
    codes.map((code) => [code, { value: { error: code, message: errorTable[code][1] } }]),
  )
  return {
    description: lines.join('\n'),
    headers: headersOf(status),
    content: { 'application/json': { schema: schema as Media['schema'], examples } },
  }
}
