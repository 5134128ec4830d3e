// Generates, for every bound in an operation's document, a request at the bound and a request past it.
import { type Breach, listOfLength, nameAt, replaceAt, sitesOf } from './breach.ts'
import type { Operation, Parameter, Schema } from './document.ts'
import { agreeing } from './generate.ts'
import { textKind } from './texts.ts'

export interface Boundary {
  what: string
  change: NonNullable<Breach['draft']>
  isTaken: boolean
}

/** A value at a bound of its schema, or past it. */
interface Edge {
  what: string
  value: unknown
  isTaken: boolean
}

export function boundariesOf(operation: Operation): Boundary[] {
  const { parameters, body } = operation
  const ofParameters = parameters.flatMap((parameter) => boundariesOfParameter(operation, parameter))
  return [...ofParameters, ...(body ? boundariesOfBody(body) : [])]
}

function boundariesOfBody(schema: Schema): Boundary[] {
  const sites = sitesOf(schema)
  const example = sites[0]!.value
  return sites.flatMap(({ place, schema, value }) =>
    edgesOf(schema, nameAt(place), value).map((edge) => ({
      ...edge,
      what: `/${place.join('/')} ${edge.what}`,
      change: (draft) => ({ ...draft, body: replaceAt(example, place, edge.value) }),
    })),
  )
}

function boundariesOfParameter(operation: Operation, { name, in: place, schema }: Parameter): Boundary[] {
  return edgesOf(schema, name, undefined).map((edge) => ({
    ...edge,
    what: `${name} ${edge.what}`,
    change: (draft) => {
      if (place === 'header') return { ...draft, headers: { ...draft.headers, [name]: edge.value } }
      if (place === 'path') return { ...draft, path: { ...draft.path, [name]: edge.value } }
      const others = draft.query.filter(([other]) => other !== name)
      return { ...draft, query: agreeing(operation, [...others, [name, edge.value]]) }
    },
  }))
}

function edgesOf(schema: Schema, name: string, value: unknown): Edge[] {
  const { minimum, maximum, minItems, maxItems, minLength, maxLength, maxProperties } = schema
  const edge = (
    what: string,
    bound: number | undefined,
    past: number,
    make: (size: number) => unknown,
  ): Edge[] =>
    bound === undefined || past < 0
      ? []
      : [
          { what: `${what} ${bound}`, value: make(bound), isTaken: true },
          { what: `${what} ${past}`, value: make(past), isTaken: false },
        ].filter((one) => one.value !== null)
  const text = (length: number) => (schema.enum ? null : textOfLength(schema, name, length))
  const list = (length: number) => listOfLength(schema, Array.isArray(value) ? value[0] : null, length)
  const dictionary = (size: number) =>
    schema.properties
      ? null
      : Object.fromEntries(Array.from({ length: size }, (_, index) => [`k${index}`, index]))
  return [
    ...edge('is', minimum, minimum! - 1, (size) => size),
    ...edge('is', maximum, maximum! + 1, (size) => size),
    ...edge('has a length of', minLength, minLength! - 1, text),
    ...edge('has a length of', maxLength, maxLength! + 1, text),
    ...edge('has so many items:', minItems, minItems! - 1, list),
    ...edge('has so many items:', maxItems, maxItems! + 1, list),
    ...edge('has so many properties:', maxProperties, maxProperties! + 1, dictionary),
  ]
}

function textOfLength(schema: Schema, name: string, length: number): string | null {
  const text = textKind(schema, name).ofLength(length)
  // If no valid text has this length, use any text. The request may then be refused for more than its length.
  if (text === null) return length > (schema.maxLength ?? 0) ? 'x'.repeat(length) : null
  return text
}
