// Completes the OpenAPI document with the parts that route schemas cannot express: errors by code, headers, examples.
import type { ErrorCode } from '../errors.ts'
import { webhooks } from '../schemas/announcement.ts'
import { commonHeaders, describeHeaders, headersOf } from './headers.ts'
import { type RefusalResponse, Refusals } from './refusals.ts'

/** Examples by the name under which a reader selects them. */
export type Examples = Readonly<Record<string, unknown>>

/** Documentation of an operation beyond its schemas. */
export interface OperationNotes {
  /** Every code that it can answer with. */
  codes: ErrorCode[]
  /** Examples of its request and of its success, which replace those of their schemas. */
  examples: { request?: Examples; response?: Examples }
  /** The headers that only its success answer has, each with its description. */
  headers: Readonly<Record<string, string>>
  /** Calls that the service makes because of it. */
  callbacks?: object | undefined
}

interface Media {
  schema: { $ref?: string }
  examples?: Record<string, { summary?: string; value: unknown }>
}

interface Schema {
  description?: string
  oneOf?: object[]
  examples?: unknown[]
}

interface Answer {
  description: string
  headers?: Record<string, object>
  content?: Record<string, Media>
}

export interface Operation {
  operationId: string
  parameters?: { name: string; in: string; schema: object; example?: unknown }[]
  requestBody?: { description?: string; content: Record<string, Media> }
  responses: Record<string, Answer>
  callbacks?: object
}

export interface OpenApiDocument {
  paths: Methods
  webhooks?: Methods
  components: {
    schemas?: Record<string, Schema>
    headers?: Record<string, object>
    responses?: Record<string, RefusalResponse>
    parameters?: Record<string, object>
  }
}

type Methods = Record<string, Record<string, Operation>>

/**
 * Adds errors, headers and examples to every operation. `notes` are keyed by operation id. `usual` are the codes of nearly
 * all operations.
 */
export function finishDocument(
  document: OpenApiDocument,
  notes: ReadonlyMap<string, OperationNotes>,
  usual: readonly ErrorCode[],
): OpenApiDocument {
  const refusals = new Refusals(usual)
  const schemas = document.components.schemas ?? {}
  document.components.headers = { ...commonHeaders }
  const calls: Methods = structuredClone(webhooks)
  document.webhooks = calls
  for (const operation of operationsOf(document.paths))
    finishOperation(operation, notes.get(operation.operationId)!, { refusals, schemas })
  sayOnce(operationsOf(document.paths), schemas)
  for (const operation of operationsOf(calls)) giveAllExamples(operation, {}, schemas)
  for (const media of operationsOf(document.paths, calls).flatMap(mediaOf))
    delete schemas[nameOf(media)]?.examples
  document.components.responses = refusals.responses
  return document
}

/** Moves the description of a body with several forms to the body itself, because a page would repeat it for each form. */
function sayOnce(operations: readonly Operation[], schemas: Shared['schemas']): void {
  const moved = new Set<Schema>()
  for (const { requestBody } of operations) {
    const [media] = Object.values(requestBody?.content ?? {})
    const schema = media && schemas[nameOf(media)]
    if (!schema?.oneOf || !schema.description) continue
    requestBody!.description = schema.description
    moved.add(schema)
  }
  for (const schema of moved) delete schema.description
}

/**
 * For programs that only need types: drops webhooks, callbacks, the headers that all successes have, and all examples except
 * those of request bodies and parameters.
 */
export function abridge(document: OpenApiDocument): OpenApiDocument {
  delete document.webhooks
  dropExamples(document.components)
  for (const operation of operationsOf(document.paths)) {
    dropExamples(operation.responses)
    delete operation.callbacks
    for (const answer of Object.values(operation.responses)) dropCommonHeaders(answer)
  }
  return document
}

function dropCommonHeaders(answer: Answer): void {
  const own = Object.entries(answer.headers ?? {}).filter(([name]) => !(name in commonHeaders))
  if (own.length > 0) answer.headers = Object.fromEntries(own)
  else delete answer.headers
}

function dropExamples(value: unknown): void {
  if (value === null || typeof value !== 'object') return
  for (const [name, member] of Object.entries(value))
    if (name === 'examples') delete (value as { examples?: unknown }).examples
    else dropExamples(member)
}

export function operationsOf(...all: Methods[]): Operation[] {
  return all.flatMap((one) => Object.values(one).flatMap((methods) => Object.values(methods)))
}

function mediaOf({ requestBody, responses }: Operation): Media[] {
  const holders = [requestBody, ...Object.values(responses)]
  return holders.flatMap((holder) => Object.values(holder?.content ?? {}))
}

interface Shared {
  refusals: Refusals
  schemas: Record<string, Schema>
}

function finishOperation(operation: Operation, notes: OperationNotes, { refusals, schemas }: Shared): void {
  const { codes, examples, headers, callbacks } = notes
  giveAllExamples(operation, examples, schemas)
  const isCounted = codes.includes('rate_limited')
  for (const [status, response] of Object.entries(operation.responses))
    response.headers = { ...headersOf(Number(status), { isCounted }), ...describeHeaders(headers) }
  Object.assign(operation.responses, refusals.refer(operation.operationId, codes))
  if (callbacks) operation.callbacks = callbacks
}

function giveAllExamples(
  { requestBody, responses }: Operation,
  { request, response }: OperationNotes['examples'],
  schemas: Shared['schemas'],
): void {
  for (const media of Object.values(requestBody?.content ?? {})) giveExamples(media, request, schemas)
  for (const { content = {} } of Object.values(responses))
    for (const media of Object.values(content)) giveExamples(media, response, schemas)
}

/** Sets a media type's examples: its own, else those of the schema that it refers to. */
function giveExamples(media: Media, own: Examples | undefined, schemas: Shared['schemas']): void {
  const [ofSchema] = schemas[nameOf(media)]?.examples ?? []
  const named = own ?? (ofSchema === undefined ? {} : { example: ofSchema })
  if (Object.keys(named).length === 0) return
  media.examples = Object.fromEntries(Object.entries(named).map(([name, value]) => [name, { value }]))
}

/** The name of the referenced schema; empty if the schema is inline. */
function nameOf({ schema }: Media): string {
  return schema.$ref?.split('/').at(-1) ?? ''
}
