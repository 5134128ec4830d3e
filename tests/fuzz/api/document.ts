// The OpenAPI document for the fuzzer: every operation with its references resolved, and validators for answers.
import { Compile, type Validator } from 'typebox/schema'

export interface Schema {
  type?: string | string[]
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  oneOf?: Schema[]
  items?: Schema
  additionalProperties?: boolean | Schema
  propertyNames?: Schema
  pattern?: string
  format?: string
  contentEncoding?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
  uniqueItems?: boolean
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
}

interface DocumentedResponse {
  description: string
  content?: Record<string, { schema: Schema }>
}

export interface Operation {
  /** `POST /v1/send` */
  name: string
  method: string
  /** Path with its parameters in braces. */
  path: string
  parameters: Parameter[]
  /** Schema of the JSON body, or null if the operation takes none. */
  body: Schema | null
  responses: Record<string, DocumentedResponse>
}

interface Written {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: { 'application/json': { schema: Schema } } }
  responses: Record<string, DocumentedResponse>
}
interface Document {
  paths: Record<string, Record<string, Written>>
  components: Record<string, Record<string, unknown>>
}

/** Returns every operation that the service at `base` documents. */
export async function readOperations(base: string): Promise<Operation[]> {
  const document = (await (await fetch(`${base}/openapi.json`)).json()) as Document
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, written]) => {
      const { parameters = [], requestBody, responses } = writeInPlace(written, document) as Written
      return {
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        parameters: parameters.map((parameter) => ({ ...parameter, required: parameter.required ?? false })),
        body: requestBody?.content['application/json'].schema ?? null,
        responses,
      }
    }),
  )
}

/** Resolves references, which point into the whole document, so that each schema is complete. */
function writeInPlace(value: unknown, document: Document): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((member) => writeInPlace(member, document))
  const { $ref } = value as { $ref?: string }
  if (typeof $ref === 'string') {
    const [kind, name] = $ref.split('/').slice(-2)
    return writeInPlace(document.components[kind!]![name!], document)
  }
  const members = Object.entries(value).filter(([name]) => !['example', 'examples', '$id'].includes(name))
  return Object.fromEntries(members.map(([name, member]) => [name, writeInPlace(member, document)]))
}

export function typesOf(schema: Schema): string[] {
  if (schema.type !== undefined) return [schema.type].flat()
  return schema.properties ? ['object'] : []
}

/** Returns sets of properties. A value must have one of these sets. */
export function alternativesOf({ oneOf = [] }: Schema): string[][] {
  return oneOf.map(({ required = [] }) => required)
}

export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Buffer
}

const judges = new WeakMap<Schema, Validator>()

/** Returns how an answer violates the operation's document, or null. */
export function faultOf({ responses }: Operation, answer: Answer): string | null {
  const { status, headers } = answer
  const documented = responses[status]
  if (!documented) return `the status ${status} is not documented`
  if (status >= 500) return 'it is a fault of the service'
  for (const [name, value] of Object.entries(commonHeaders(status)))
    if (!value.test(String(headers[name] ?? ''))) return `the header ${name} is ${headers[name]}`
  const [contentType, content] = Object.entries(documented.content ?? {})[0] ?? []
  if (!contentType || !content)
    return answer.body.length === 0 && !headers['content-type']
      ? null
      : 'it has a body that is not documented'
  if (!String(headers['content-type']).startsWith(contentType))
    return `its content-type is ${headers['content-type']}`
  if (contentType !== 'application/json') return null
  return faultOfJson(documented, content.schema, answer)
}

function commonHeaders(status: number): Record<string, RegExp> {
  return {
    'x-request-id': /^[\w-]{8,}$/,
    'cache-control': /^(?:private, )?no-store$/,
    'x-content-type-options': /^nosniff$/,
    ...(status !== 401 && {
      'ratelimit-policy': /^"requests";q=\d+;w=60$/,
      ratelimit: /^"requests";r=\d+;t=\d+$/,
    }),
    ...(status === 429 && { 'retry-after': /^[1-9]\d*$/ }),
  }
}

function faultOfJson(
  documented: DocumentedResponse,
  schema: Schema,
  { status, body }: Answer,
): string | null {
  const value = JSON.parse(body.toString())
  if (!judges.has(schema)) judges.set(schema, Compile(schema as never) as unknown as Validator)
  const [isRight, errors] = judges.get(schema)!.Errors(value)
  if (!isRight) return `its body is not of the documented form: ${JSON.stringify(errors)}`
  if (status < 400) return null
  return documented.description.includes(`\`${value.error}\``)
    ? null
    : `the code ${value.error} is not documented`
}
