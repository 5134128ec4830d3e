// The operations of the API as MCP tools use them: found as they are added, called in this process with the caller's key.
import type { Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { ServiceError } from '../../base/errors.ts'
import type { Scope } from '../../flow/caller.ts'
import type { Api } from '../api.ts'
import { scopesOf } from '../caller.ts'
import { components } from '../schemas/components.ts'
import { type Kept, shortenStrings } from './shorten-strings.ts'

interface ObjectSchema {
  properties?: Record<string, unknown>
  required?: string[]
}

/** An operation with the schemas that its requests are checked against. */
export interface Operation {
  method: string
  /** With `:name` for each parameter. */
  path: string
  /** A key needs one of them. Empty: any valid key may call. */
  scopes: readonly Scope[]
  params: ObjectSchema
  query: ObjectSchema
  headers: ObjectSchema
  body: ObjectSchema | null
}

/** Operations by their operationId. */
export type Operations = Map<string, Operation>

/** Adds the operations that are added to `api` from now on. */
export function collectOperations(api: Api, operations: Operations): void {
  api.addHook('onRoute', ({ method, url, config, schema }) => {
    const { operationId } = (schema ?? {}) as { operationId?: string }
    // A route of GET is added a second time for HEAD.
    if (operationId === undefined || typeof method !== 'string' || operations.has(operationId)) return
    operations.set(operationId, {
      method,
      path: url,
      scopes: scopesOf(config?.scope ?? null),
      params: resolved(schema?.params),
      query: resolved(schema?.querystring),
      headers: resolved(schema?.headers),
      body: schema?.body ? resolved(schema.body) : null,
    })
  })
}

const definitions = new Map<string, unknown>(
  components.map(({ definition }) => [`${definition.$id}#`, definition]),
)

function resolved(schema: unknown): ObjectSchema {
  return (inlined(schema) ?? {}) as ObjectSchema
}

/** Members that only the OpenAPI document needs, and patterns, which some clients cannot compile. */
const droppedMembers = ['$id', 'examples', 'pattern', 'propertyNames']

/** The schema with each reference replaced by its definition, because the schema of a tool has no others next to it. */
function inlined(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(inlined)
  if (typeof schema !== 'object' || schema === null) return schema
  const { $ref } = schema as { $ref?: string }
  if ($ref !== undefined) return inlined(definitions.get($ref))
  const kept = Object.entries(schema).filter(([name]) => !droppedMembers.includes(name))
  return Object.fromEntries(kept.map(([name, value]) => [name, inlined(value)]))
}

/** The name of the argument that becomes the header idempotency-key. */
const keyArgument = 'idempotencyKey'
const keyHeader = 'idempotency-key'

/** The arguments of an operation: its parameters, its query, its body and its idempotency key in one object. */
export function argumentsOf({ params, query, headers, body }: Operation): Required<ObjectSchema> {
  const key = headers.properties?.[keyHeader]
  const properties = {
    ...params.properties,
    ...query.properties,
    ...body?.properties,
    ...(key !== undefined && { [keyArgument]: key }),
  }
  const required = [...(params.required ?? []), ...(query.required ?? []), ...(body?.required ?? [])]
  if (headers.required?.includes(keyHeader)) required.push(keyArgument)
  return { properties, required }
}

/** The caller of a tool, as operations see them. */
export interface ToolCaller {
  secret: string
  ip: string
  /** Aborted when the client leaves. */
  signal: AbortSignal
  /** Counts bytes of an answer in the memory of the organization until the client has its answer, or refuses them. */
  hold(bytes: number): void
}

/** Memory for each byte or character of an answer: as it was read, and what is made of it, each with up to two bytes. */
const bytesHeldPerUnit = 4

/** The answer of an operation whose body is still unread. */
export interface OperationAnswer {
  status: number
  headers: Record<string, unknown>
  body: Readable
  /** Counts bytes or characters of the body before a tool keeps them. */
  hold(length: number): void
  /** Ends the operation if its body is not read to the end. */
  end(): void
}

/**
 * Calls the operation as a request of the caller: with its authentication, limits, checks and tenant. Arguments that no part
 * of the operation has go into its body or query, which refuses them.
 */
export async function callOperation(
  api: Api,
  operation: Operation,
  { secret, ip, signal, hold }: ToolCaller,
  given: Record<string, unknown>,
): Promise<OperationAnswer> {
  const { path, headers, payload } = requestOf(operation, given)
  // Nothing would listen for the error of a stream whose signal is aborted already, and it would end the process.
  if (signal.aborted) throw new ServiceError('unavailable')
  const answer = await api
    .inject({
      method: operation.method as 'GET',
      url: path,
      headers: { ...headers, 'x-api-key': secret },
      payload,
      remoteAddress: ip,
      signal,
      payloadAsStream: true,
    })
    .catch((failure: { code?: string }) => {
      // The service stops, or the client has left.
      if (failure.code === 'FST_ERR_REOPENED_CLOSE_SERVER' || signal.aborted)
        throw new ServiceError('unavailable')
      throw failure
    })
  const body = answer.stream()
  // An operation that is ended early has no other listener for it.
  body.on('error', () => {})
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body,
    hold: (length) => hold(length * bytesHeldPerUnit),
    end: () => answer.raw.res.destroy(),
  }
}

function requestOf({ path, query, headers, body }: Operation, given: Record<string, unknown>) {
  // Models write null for an argument that they leave out.
  const rest = new Map(Object.entries(given).filter(([, value]) => value !== null && value !== undefined))
  const take = (name: string) => {
    const text = textOfValue(name, rest.get(name))
    rest.delete(name)
    return text
  }
  const taken = path.replace(/:(\w+)/g, (_, name: string) => idText(take(name)))
  const key = headers.properties?.[keyHeader] && rest.has(keyArgument) ? take(keyArgument) : undefined
  const inQuery = [...rest].filter(([name]) => !body || query.properties?.[name] !== undefined)
  const inBody = [...rest].filter(([name]) => body && query.properties?.[name] === undefined)
  const search = new URLSearchParams(
    inQuery.map(([name, value]): [string, string] => [name, textOfValue(name, value)]),
  )
  return {
    path: search.size > 0 ? `${taken}?${search}` : taken,
    headers: {
      ...(key !== undefined && { [keyHeader]: key }),
      ...(body && { 'content-type': 'application/json' }),
    },
    payload: body ? JSON.stringify(Object.fromEntries(inBody)) : undefined,
  }
}

/** The text of an argument that is no part of a body. Empty if it is absent. Refuses lists and objects. */
function textOfValue(name: string, value: unknown = ''): string {
  if (['string', 'number', 'boolean'].includes(typeof value)) return String(value)
  throw new ServiceError('invalid_request', `/${name} must be a string, a number or a boolean`)
}

/** Security: a path parameter is one word, because `..` would lead to another operation. The schema refuses `none`. */
function idText(text: string): string {
  return /^[\w-]{1,100}$/.test(text) ? text : 'none'
}

/** The longest JSON that a tool reads after its strings were shortened. */
const maxJsonChars = 4 << 20

/**
 * Reads the JSON of an answer. Keeps up to `maxChars` characters of each string, and `more` if it is given, so that mail of
 * any size needs little memory. Null if there is no body.
 */
export async function readJsonOf(
  { body, end, hold }: OperationAnswer,
  maxChars: number,
  more: Pick<Kept, 'from' | 'length'> = { from: 0, length: 0 },
): Promise<unknown> {
  const kept = { head: maxChars, ...more }
  const json = await textOf(shortenStrings(body.setEncoding('utf8'), kept, maxJsonChars, hold))
    .catch(rethrowInterrupted)
    .finally(end)
  return json === '' ? null : (JSON.parse(json) as unknown)
}

/** The client left, or the operation failed after its first bytes, and has logged it. */
export function rethrowInterrupted(failure: unknown): never {
  throw failure instanceof ServiceError ? failure : new ServiceError('unavailable')
}
