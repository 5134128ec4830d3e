// The service's OpenAPI document: its operations, their possible answers, and validators for these answers.
import { Compile, type Validator } from 'typebox/schema'

export interface Schema {
  $ref?: string
  type?: string | string[]
  properties?: Record<string, Schema>
  additionalProperties?: unknown
  examples?: unknown[]
  [keyword: string]: unknown
}

interface Media {
  schema: Schema
  examples?: Record<string, { value: unknown }>
}

interface Response {
  description: string
  content?: Record<string, Media>
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
}

interface WrittenOperation {
  operationId: string
  'x-scopes': string[]
  parameters?: (Parameter | { $ref: string })[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, Response | { $ref: string }>
}

export interface WrittenDocument {
  paths: Record<string, Record<string, WrittenOperation>>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, Response>
    parameters: Record<string, Parameter>
  }
}

/** One operation, under the name that proofs use: `POST /v1/send`. */
export interface Operation {
  name: string
  id: string
  method: string
  path: string
  /** A key needs one of these scopes. If empty, any key will do. */
  scopes: string[]
  pathParameters: string[]
  queryParameters: string[]
  headers: string[]
  /** An example of the body, or null if the operation takes none. */
  example: Record<string, unknown> | null
  /** Every documented error, in the document's order. */
  refusals: { status: number; code: string; judge: Validator }[]
  /** The one success. The media type is null if there is no body. The validator is null if the body is not JSON. */
  success: { status: number; mediaType: string | null; judge: Validator | null }
}

export class ApiDocument {
  readonly operations: readonly Operation[]
  readonly #schemas: Record<string, Schema>
  readonly #answers: Record<string, Response>
  readonly #parameters: Record<string, Parameter>

  constructor({ paths, components }: WrittenDocument) {
    this.#schemas = components.schemas
    this.#answers = components.responses
    this.#parameters = components.parameters
    this.operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, written]) => this.#read(method.toUpperCase(), path, written)),
    )
  }

  static async fetch(base: string): Promise<ApiDocument> {
    return new ApiDocument((await (await fetch(`${base}/openapi.json`)).json()) as WrittenDocument)
  }

  find(name: string): Operation {
    const operation = this.operations.find((one) => one.name === name)
    if (!operation) throw new Error(`the document has no operation ${name}`)
    return operation
  }

  #read(method: string, path: string, written: WrittenOperation): Operation {
    const { operationId: id, 'x-scopes': scopes, requestBody } = written
    const parameters = (written.parameters ?? []).map((one) =>
      '$ref' in one ? this.#parameters[one.$ref.split('/').at(-1)!]! : one,
    )
    const responses = this.#answersOf(written)
    const named = (place: string) => parameters.filter((one) => one.in === place).map(({ name }) => name)
    const body = requestBody?.content['application/json']
    return {
      name: `${method} ${path}`,
      id,
      method,
      path,
      scopes,
      pathParameters: named('path'),
      queryParameters: named('query'),
      headers: named('header'),
      example: body ? this.#exampleOf(body) : null,
      refusals: Object.entries(responses).flatMap(([status, response]) =>
        Number(status) < 400 ? [] : this.#refusalsOf(Number(status), response),
      ),
      success: this.#successOf(`${method} ${path}`, responses),
    }
  }

  /** Resolves references to answers that operations share. */
  #answersOf({ responses }: WrittenOperation): Record<string, Response> {
    return Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [
        status,
        '$ref' in response ? this.#answers[response.$ref.split('/').at(-1)!]! : response,
      ]),
    )
  }

  #refusalsOf(status: number, { description, content }: Response): Operation['refusals'] {
    const judge = Compile(this.#inPlace(content!['application/json']!.schema) as never)
    return codesOf(description).map((code) => ({ status, code, judge: judge as unknown as Validator }))
  }

  #successOf(name: string, responses: Record<string, Response>): Operation['success'] {
    const successes = Object.entries(responses).filter(([status]) => Number(status) < 400)
    if (successes.length !== 1) throw new Error(`${name} documents ${successes.length} successes`)
    const [status, { content = {} }] = successes[0]!
    const [mediaType = null] = Object.keys(content)
    const isJson = mediaType === 'application/json'
    return {
      status: Number(status),
      mediaType,
      judge: isJson ? this.#strictJudge(content[mediaType]!.schema) : null,
    }
  }

  #exampleOf({ schema, examples = {} }: Media): Record<string, unknown> {
    const example = Object.values(examples)[0]?.value ?? this.#resolve(schema).examples?.[0]
    if (example === undefined) throw new Error(`a body has no example: ${JSON.stringify(schema)}`)
    return example as Record<string, unknown>
  }

  #resolve(schema: Schema): Schema {
    return schema.$ref === undefined ? schema : this.#schemas[schema.$ref.split('/').at(-1)!]!
  }

  /** Returns a validator that rejects properties the schema does not list. */
  #strictJudge(schema: Schema): Validator {
    return Compile(closed(this.#inPlace(schema)) as never) as unknown as Validator
  }

  /** Resolves the schema's references, which point into the whole document. */
  #inPlace(value: unknown): unknown {
    if (value === null || typeof value !== 'object') return value
    if (Array.isArray(value)) return value.map((member) => this.#inPlace(member))
    const schema = value as Schema
    if (typeof schema.$ref === 'string') return this.#inPlace(this.#resolve(schema))
    return Object.fromEntries(
      Object.entries(schema)
        .filter(([keyword]) => keyword !== 'examples' && keyword !== '$id')
        .map(([keyword, member]) => [keyword, this.#inPlace(member)]),
    )
  }
}

function closed(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(closed)
  const { type, properties } = value as Schema
  const members = Object.entries(value).map(([keyword, member]) => [keyword, closed(member)])
  const isObject = [type].flat().includes('object') && properties !== undefined
  return { ...(isObject && { additionalProperties: false }), ...Object.fromEntries(members) }
}

/** Returns the codes in a response's description, which has one per line. */
function codesOf(description: string): string[] {
  return [...description.matchAll(/^- `(\w+)`/gm)].map(([, code]) => code!)
}
