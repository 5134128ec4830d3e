// Says what breaks a schema as a person would: which value, as a JSON pointer, and what was expected of it.
import type { FastifyError } from 'fastify'
import { describePattern } from './schemas/patterns.ts'

/** What the validator says of a breach; it is made with `verbose`, so that the schema that was broken is there. */
type Breach = NonNullable<FastifyError['validation']>[number] & { parentSchema?: Broken }

interface Broken {
  type?: string | readonly string[]
  pattern?: string
  format?: string
  enum?: readonly (string | null)[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
  properties?: Readonly<Record<string, unknown>>
}

const maxPointer = 200

/** The first breach, in words. */
export function describeBreach(breaches: readonly Breach[]): string {
  const breach = cause(breaches)
  const { keyword, instancePath, params, parentSchema: broken = {} } = breach
  const at = (name?: unknown) =>
    shorten(name === undefined ? instancePath : `${instancePath}/${escapePointer(String(name))}`)
  if (keyword === 'required') return `${at(params['missingProperty'])} is required`
  if (keyword === 'additionalProperties')
    return `${at(params['additionalProperty'])} is not known here${known(broken)}`
  if (keyword === 'propertyNames') {
    const pattern = String(breaches.at(-2)?.params['pattern'])
    return `${at(params['propertyName'])} ${describePattern(pattern)}`
  }
  if (keyword === 'oneOf') return '/text is required, or /html'
  return `${at() || 'the body'} ${expectation(keyword, broken) ?? breach.message}`
}

/** The last is what failed; of a choice that failed, a branch says it better where its value was there but wrong. */
function cause(breaches: readonly Breach[]): Breach {
  const last = breaches.at(-1)!
  if (last.keyword !== 'oneOf') return last
  return breaches.find(({ instancePath }) => instancePath.length > last.instancePath.length) ?? last
}

/** The names there are, where there are any: a typo is most often one of them. */
function known({ properties = {} }: Broken): string {
  const names = Object.keys(properties)
  return names.length === 0 ? '' : `: known are ${names.join(', ')}`
}

function expectation(keyword: string, broken: Broken): string | null {
  switch (keyword) {
    case 'minLength':
    case 'maxLength':
      return `must be ${range(broken.minLength, broken.maxLength)} characters long`
    case 'minItems':
    case 'maxItems':
      return `must have ${range(broken.minItems, broken.maxItems)} entries`
    case 'maxProperties':
      return `must have ${range(undefined, broken.maxProperties)} entries`
    case 'uniqueItems':
      return 'must not have the same entry twice'
    default:
      return wholeExpectation(broken)
  }
}

const formatWords: Readonly<Record<string, string>> = {
  'idn-email': 'must be an e-mail address',
  email: 'must be written as an e-mail address is',
}
const typeWords: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  null: 'null',
}

/** What any value of the schema is; null where it does not say. */
function wholeExpectation({
  type,
  pattern,
  format = '',
  minimum,
  maximum,
  ...broken
}: Broken): string | null {
  const types = type === undefined ? [] : [type].flat()
  const orNull = types.includes('null') ? ' or null' : ''
  if (broken.enum) return `must be one of ${broken.enum.map(String).join(', ')}`
  if (pattern !== undefined) return describePattern(pattern) + orNull
  if (formatWords[format]) return formatWords[format] + orNull
  if (types.length === 0) return null
  const isBounded = minimum !== undefined && maximum !== undefined
  const bounds = isBounded ? ` from ${minimum} to ${maximum}` : ''
  const words = types.map((one) => (typeWords[one] ?? one) + (isNumeric(one) ? bounds : ''))
  return `must be ${[words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' or ')}`
}

function isNumeric(type: string): boolean {
  return type === 'number' || type === 'integer'
}

function range(least = 0, max?: number): string {
  if (max === undefined) return `at least ${least}`
  return least === 0 ? `at most ${max}` : `${least} to ${max}`
}

// RFC 6901 3: a tilde and a slash are written as ~0 and ~1.
function escapePointer(name: string): string {
  return name.slice(0, maxPointer).replaceAll('~', '~0').replaceAll('/', '~1')
}

/** Names are the caller's and may be megabytes. */
function shorten(pointer: string): string {
  return pointer.length <= maxPointer ? pointer : `${pointer.slice(0, maxPointer)}…`
}
