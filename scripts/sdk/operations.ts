// The operations of the SDKs: names from sdk/operations.json, everything else from the OpenAPI document.
import names from '../../sdk/operations.json' with { type: 'json' }

export interface SdkOperation {
  /** The part of the client that has the method. Empty: the client itself. */
  part: string
  verb: string
  operationId: string
  method: string
  path: string
  summary: string
  description: string
  /** The parameters of the path. */
  ids: string[]
  /** Whether the fields of a call go into the body. */
  body: boolean
  /** The name of the argument that has the fields. Empty: the operation takes none. */
  fields: '' | 'query' | 'body'
  isRequired: boolean
  /** The member of a page that holds its items. Undefined: the operation is no list. */
  items: string | undefined
  answer: 'json' | 'text' | 'bytes' | 'nothing'
  hasKey: boolean
  isOnce: boolean
  isStream: boolean
}

interface Described {
  operationId: string
  summary: string
  description: string
  parameters?: ({ $ref: string } | Parameter)[]
  requestBody?: object
  responses: Record<string, { content?: Record<string, unknown> }>
}

interface Parameter {
  name: string
  in: string
  required?: boolean
}

interface Document {
  paths: Record<string, Record<string, Described>>
  components: { parameters: Record<string, Parameter> }
}

interface Named {
  operation: string
  items?: string
  key?: boolean
  once?: boolean
  stream?: boolean
}

/** Throws if an operation of the document has no name, or a name no operation. */
export function readOperations(text: string): SdkOperation[] {
  const document = JSON.parse(text) as Document
  const described = new Map(
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [
        operation.operationId,
        { path, method, operation },
      ]),
    ),
  )
  const given = Object.entries(names as Record<string, Named>)
  const known = new Set(given.map(([, { operation }]) => operation))
  const unnamed = [...described.keys()].filter((id) => !known.has(id))
  if (unnamed.length > 0) throw new Error(`sdk/operations.json has no name for ${unnamed.join(', ')}`)
  return given.map(([name, named]) => {
    const found = described.get(named.operation)
    if (!found) throw new Error(`${name} in sdk/operations.json names no operation of the document`)
    const { path, method, operation } = found
    const resolved = (operation.parameters ?? []).map((one) =>
      '$ref' in one ? document.components.parameters[one.$ref.split('/').at(-1)!]! : one,
    )
    return describe(name, named, { path, method, operation, parameters: resolved })
  })
}

interface Found {
  path: string
  method: string
  operation: Described
  parameters: Parameter[]
}

function describe(name: string, named: Named, { path, method, operation, parameters }: Found): SdkOperation {
  const [verb, part = ''] = name.split('.').reverse()
  const body = operation.requestBody !== undefined
  const query = parameters.filter((one) => one.in === 'query')
  return {
    part,
    verb: verb!,
    operationId: operation.operationId,
    method: method.toUpperCase(),
    path,
    summary: operation.summary,
    description: operation.description ?? '',
    ids: [...path.matchAll(/\{(\w+)\}/g)].map(([, id]) => id!),
    body,
    fields: body ? 'body' : query.length > 0 ? 'query' : '',
    isRequired: body || query.some(({ required }) => required),
    items: named.items,
    answer: answerOf(operation),
    hasKey: named.key ?? false,
    isOnce: named.once ?? false,
    isStream: named.stream ?? false,
  }
}

function answerOf({ responses }: Described): SdkOperation['answer'] {
  const [, { content = {} }] = Object.entries(responses).find(([status]) => status < '300')!
  const [type] = Object.keys(content)
  if (type === undefined) return 'nothing'
  if (type === 'application/json') return 'json'
  return type === 'text/plain' ? 'text' : 'bytes'
}
