// The OpenAPI document as these tests read it.
import { Compile, type Validator } from 'typebox/schema'

export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  examples?: unknown[]
  [keyword: string]: unknown
}
export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  example?: unknown
  schema: Schema
}
export interface Media {
  schema: Schema
  examples?: Record<string, { value: unknown }>
}
interface Answer {
  description: string
  headers?: Record<string, object>
  content?: Record<string, Media>
}
export interface Operation {
  operationId: string
  summary: string
  description: string
  tags: string[]
  security: object[]
  /** The key needs one of them. */
  'x-scopes': string[]
  parameters?: Parameter[]
  requestBody?: { description?: string; content: Record<string, Media> }
  responses: Record<string, Answer>
}
export interface Document {
  openapi: string
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: {
    schemas: Record<string, Schema>
    headers: Record<string, object>
    responses: Record<string, Answer>
    parameters: Record<string, Parameter>
  }
}

/** Returns the document served at `base`, with every reference to a parameter or answer resolved. */
export async function readDocument(base: string, path = '/openapi.json'): Promise<Document> {
  return withAnswers((await (await fetch(base + path)).json()) as Document)
}

function withAnswers(document: Document): Document {
  const { parameters, responses } = document.components
  const find = <Part>(shared: Record<string, Part>, part: Part | { $ref: string }): Part =>
    '$ref' in (part as object) ? shared[(part as { $ref: string }).$ref.split('/').at(-1)!]! : (part as Part)
  const calls = Object.values(document.webhooks ?? {}).map(({ post }) => post)
  const operations = operationsOf(document).map(({ operation }) => operation)
  for (const operation of [...operations, ...calls]) {
    if (operation.parameters) operation.parameters = operation.parameters.map((one) => find(parameters, one))
    for (const [status, answer] of Object.entries(operation.responses))
      operation.responses[status] = find(responses, answer)
  }
  return document
}

export interface PlacedOperation {
  path: string
  method: string
  operation: Operation
}

export function operationsOf(document: Document): PlacedOperation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
}

/**
 * Returns a validator for a schema of the document. References are resolved first, because they point into the whole
 * document.
 */
export function judgeOf(document: Document, schema: Schema): Validator {
  return Compile(inPlace(document, schema) as never) as unknown as Validator
}

function inPlace(document: Document, value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((member) => inPlace(document, member))
  const { $ref } = value as Schema
  if (typeof $ref === 'string') return inPlace(document, document.components.schemas[$ref.split('/').at(-1)!])
  return Object.fromEntries(
    Object.entries(value)
      .filter(([keyword]) => keyword !== 'examples' && keyword !== '$id')
      .map(([keyword, member]) => [keyword, inPlace(document, member)]),
  )
}

/** Like `judgeOf`, but rejects object properties that the schema does not list. */
export function judgeStrictly(document: Document, schema: Schema): Validator {
  return Compile(closed(inPlace(document, schema)) as never) as unknown as Validator
}

function closed(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(closed)
  const members = Object.entries(value).map(([keyword, member]) => [keyword, closed(member)])
  const isObject = (value as Schema).properties !== undefined
  return { ...(isObject && { additionalProperties: false }), ...Object.fromEntries(members) }
}
