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
export interface Operation {
  operationId: string
  summary: string
  tags: string[]
  security: object[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<
    string,
    { description: string; headers?: Record<string, object>; content?: Record<string, Media> }
  >
}
export interface Document {
  openapi: string
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: { schemas: Record<string, Schema>; headers: Record<string, object> }
}

export async function readDocument(base: string): Promise<Document> {
  return (await (await fetch(`${base}/openapi.json`)).json()) as Document
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

/** A judge of a schema of the document; references are written in place, for they lead into the whole document. */
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

/** As `judgeOf`, but what an object of the schema does not list, it must not have. */
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
