// The OpenAPI document as the service gives it: its operations, what each may answer, and judges of those answers.
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
  security: { apiKey: string[] }[]
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

/** One operation, by the name that proofs call it: `POST /v1/send`. */
export interface Operation {
  name: string
  id: string
  method: string
  path: string
  /** A key needs one of these; none: any key will do. */
  scopes: string[]
  pathParameters: string[]
  queryParameters: string[]
  headers: string[]
  /** An example of its body; null where it takes none. */
  example: Record<string, unknown> | null
  /** Each error that it documents, in the order of the document. */
  refusals: { status: number; code: string; judge: Validator }[]
  /** Its one success: the media type is null where there is no body, the judge where the body is not JSON. */
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
    const { operationId: id, security, requestBody } = written
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
      scopes: security.flatMap(({ apiKey }) => apiKey),
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

  /** Answers that operations share stand by reference. */
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

  /** What an object of the schema does not list, it must not have. */
  #strictJudge(schema: Schema): Validator {
    return Compile(closed(this.#inPlace(schema)) as never) as unknown as Validator
  }

  /** The schema with its references written in place, for they lead into the whole document. */
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

/** The codes that stand in a response's description, one a line. */
function codesOf(description: string): string[] {
  return [...description.matchAll(/^- `(\w+)`/gm)].map(([, code]) => code!)
}
