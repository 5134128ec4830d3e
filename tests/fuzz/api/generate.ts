// Generates requests from an operation's schema with fast-check; ids are placeholders that are filled in when sent.
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { alternativesOf, type Operation, type Schema, typesOf } from './document.ts'
import { textKind } from './texts.ts'

/** Placeholder for the id of an object that exists when the request is sent. `sender` is an address that may send. */
export class Live {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** A request before its ids are filled in. `row` selects the existing objects it refers to. */
export interface Draft {
  row: number
  /** Parameters by name, for path, query and headers. A query may repeat a name. */
  path: Record<string, unknown>
  query: [name: string, value: unknown][]
  headers: Record<string, unknown>
  /** undefined: no body. */
  body: unknown
}

/** Reports whether a property or parameter of this name holds an id that the service issued. */
export function isIdName(name: string): boolean {
  return /Id$/.test(name) && name !== 'contentId'
}

/** Generates a valid request. */
export function validDraft(operation: Operation): fc.Arbitrary<Draft> {
  const { parameters, body } = operation
  const of = (place: string) => parameters.filter((parameter) => parameter.in === place)
  const members = (place: string) => {
    const values = of(place).map(({ name, schema }) => [name, anyOf(schema, name)] as const)
    const requiredKeys = of(place).flatMap(({ name, required }) => (required ? [name] : []))
    return fc.record(Object.fromEntries(values), { requiredKeys, noNullPrototype: true })
  }
  return fc.record({
    row: fc.nat({ max: 1_000 }),
    path: members('path'),
    query: members('query').map((values) => agreeing(operation, Object.entries(values).map(shortened))),
    headers: members('header'),
    body: body ? anyOf(body, '') : fc.constant(undefined),
  })
}

const withoutAfter = new Set(['from', 'since', 'until', 'q', 'after'])

/** Applies a rule that no schema can express: waiting for messages needs `after`, and excludes the other filters. */
export function agreeing({ parameters }: Operation, query: Draft['query']): Draft['query'] {
  if (!parameters.some(({ name }) => name === 'after')) return query
  if (!query.some(([name]) => name === 'after' || name === 'wait')) return query
  return [...query.filter(([name]) => !withoutAfter.has(name)), ['after', '0']]
}

/** Shortens the wait, because an empty inbox makes the request last that many seconds. */
function shortened([name, value]: [string, unknown]): [string, unknown] {
  return [name, name === 'wait' ? Number(value) % 2 : value]
}

/** Generates a value that the schema describes. `name` is its property or parameter. */
export function anyOf(schema: Schema, name: string): fc.Arbitrary<unknown> {
  const types = typesOf(schema)
  const choices = types.flatMap((type) => ofType(schema, type, name))
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (choices.length === 0) throw new Error(`teach the generator what ${JSON.stringify(schema)} describes`)
  return fc.oneof(...choices)
}

function ofType(schema: Schema, type: string, name: string): fc.Arbitrary<unknown>[] {
  if (type === 'null') return [fc.constant(null)]
  if (type === 'boolean') return [fc.boolean()]
  if (type === 'integer') return [fc.integer({ min: schema.minimum ?? -1e9, max: schema.maximum ?? 1e9 })]
  if (type === 'number') {
    const { minimum: min = -Number.MAX_VALUE, maximum: max = Number.MAX_VALUE } = schema
    return [fc.double({ min, max, noNaN: true, noDefaultInfinity: true })]
  }
  if (type === 'string') return [textOf(schema, name)]
  if (type === 'array') return [listOf(schema, name)]
  return [name === 'from' ? senderOf(schema) : objectOf(schema)]
}

/** Generates mostly senders that may send. The service refuses any other. */
function senderOf(schema: Schema): fc.Arbitrary<object> {
  const known = objectOf(schema).map((mailbox) => ({ ...mailbox, email: new Live('sender') }))
  return fc.oneof({ weight: 4, arbitrary: known }, objectOf(schema))
}

function textOf(schema: Schema, name: string): fc.Arbitrary<unknown> {
  const { minLength = 0, maxLength } = schema
  const kind = textKind(schema, name)
  const fits = (text: string) => {
    const length = [...text].length
    return length >= minLength && length <= (maxLength ?? Number.POSITIVE_INFINITY)
  }
  const some = kind.some.filter(fits)
  const longest = maxLength === undefined ? null : kind.ofLength(maxLength)
  const texts = longest === null ? some : fc.oneof({ weight: 20, arbitrary: some }, fc.constant(longest))
  // The cursor is always one that the list issued, or absent.
  if (name === 'cursor') return fc.constant(new Live(name))
  if (name === 'idempotency-key')
    return fc.oneof({ weight: 9, arbitrary: texts }, fc.constantFrom('used-before-1', 'used-before-2'))
  if (!isIdName(name)) return texts
  return fc.oneof({ weight: 9, arbitrary: fc.constant(new Live(name)) }, texts)
}

function listOf(
  { items, minItems = 0, maxItems = 1_000, uniqueItems }: Schema,
  name: string,
): fc.Arbitrary<unknown[]> {
  const bounds = { minLength: minItems, maxLength: Math.min(maxItems, minItems + 4) }
  const item = anyOf(items!, name)
  if (!uniqueItems) return fc.array(item, bounds)
  return fc.uniqueArray(item, { ...bounds, selector: (value) => JSON.stringify(value) })
}

function objectOf(schema: Schema): fc.Arbitrary<object> {
  const { properties = {}, required = [], additionalProperties } = schema
  if (typeof additionalProperties === 'object') return dictionaryOf(schema, additionalProperties)
  const members = Object.entries(properties).map(([name, member]) => [name, anyOf(member, name)] as const)
  const alternatives = alternativesOf(schema)
  return fc.constantFrom(...(alternatives.length > 0 ? alternatives : [[]])).chain((one) =>
    fc.record(Object.fromEntries(members), {
      requiredKeys: [...new Set([...required, ...one])],
      noNullPrototype: true,
    }),
  )
}

function dictionaryOf(
  { propertyNames = {}, maxProperties = 50 }: Schema,
  member: Schema,
): fc.Arbitrary<object> {
  const name = textKind(propertyNames, '').some.filter((text) => text !== '__proto__')
  const entries = fc.uniqueArray(fc.tuple(name, anyOf(member, '')), {
    maxLength: Math.min(maxProperties, 4),
    selector: ([key]) => key,
  })
  return entries.map((pairs) => Object.fromEntries(pairs))
}

/**
 * Returns a value with every property and at least one of each item, in which sites are found. The same schema gives the
 * same value.
 */
export function fullExample(schema: Schema, name = ''): unknown {
  const types = typesOf(schema)
  if (types.includes('string') && isIdName(name)) return new Live(name)
  if (types.includes('object') && schema.properties && name === 'from')
    return { email: new Live('sender'), name: 'A' }
  if (types.includes('object') && schema.properties)
    return Object.fromEntries(
      Object.entries(schema.properties).map(([member, inner]) => [member, fullExample(inner, member)]),
    )
  if (types.includes('object')) return { a: 'text' }
  if (types.includes('array')) return [fullExample(schema.items!, name)]
  if (schema.enum) return schema.enum[0]
  const [value] = fc.sample(anyOf(schema, name), { numRuns: 1, seed: 7 })
  return value
}

/** Returns the full request about existing objects, with a new idempotency key. */
export function exampleDraft({ parameters, body }: Operation): Draft {
  const inPath = parameters.filter((parameter) => parameter.in === 'path')
  const hasKey = parameters.some(({ name }) => name === 'idempotency-key')
  return {
    row: 0,
    path: Object.fromEntries(inPath.map(({ name }) => [name, new Live(name)])),
    query: [],
    headers: hasKey ? { 'idempotency-key': randomUUID() } : {},
    body: body ? fullExample(body) : undefined,
  }
}
