// Describes schema breaches in words: which values are wrong, as JSON pointers, and what was expected of them.
import type { FastifyContextConfig, FastifyError } from 'fastify'
import { describePattern } from './schemas/patterns.ts'

/** A breach as the validator reports it. The `verbose` option adds the broken schema. */
export type Breach = NonNullable<FastifyError['validation']>[number] & {
  parentSchema?: Broken
  /** For a breach of `propertyNames`: the invalid name. */
  propertyName?: string
}

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
  required?: readonly string[]
  examples?: readonly unknown[]
}

const maxPointer = 200

const maxDescribed = 3
const maxExample = 100

/** A wrong value, the expectation it broke, and the known alternatives. */
interface Description {
  pointer: string
  expectation: string
  known: string
}

/** Body members that only another operation accepts. */
type Elsewhere = NonNullable<FastifyContextConfig['elsewhere']>

/** Describes the first three wrong values, each by its first breach. */
export function describeBreaches(breaches: readonly Breach[], elsewhere?: Elsewhere): string {
  const described = new Map<string, Description>()
  for (const found of causes(breaches).map((breach) => describe(breach, breaches, elsewhere)))
    if (!described.has(found.pointer)) described.set(found.pointer, found)
  const first = [...described.values()].slice(0, maxDescribed)
  const sentences = first.map(({ pointer, expectation, known }, index) => {
    const isRepeatedLater = first.slice(index + 1).some((later) => later.known === known)
    return `${pointer || 'the body'} ${expectation}${isRepeatedLater ? '' : known}`
  })
  return `${sentences.join('; ')}${described.size > maxDescribed ? '; and more' : ''}`
}

function describe(breach: Breach, breaches: readonly Breach[], elsewhere?: Elsewhere): Description {
  const { keyword, instancePath, params, parentSchema: broken = {} } = breach
  const at = (name?: unknown) =>
    shorten(name === undefined ? instancePath : `${instancePath}/${escapePointer(String(name))}`)
  const wrong = (pointer: string, expectation: string, known = ''): Description => ({
    pointer,
    expectation,
    known,
  })
  switch (keyword) {
    case 'required':
      return wrong(at(params['missingProperty']), 'is required')
    case 'additionalProperties': {
      const name = String(params['additionalProperty'])
      if (instancePath === '' && elsewhere?.names.includes(name))
        return wrong(at(name), `is not accepted here, only by ${elsewhere.operation}`)
      return wrong(at(name), 'is unknown', knownTo(broken))
    }
    case 'propertyNames': {
      const pattern = String(breaches[breaches.indexOf(breach) - 1]?.params['pattern'])
      return wrong(at(params['propertyName']), describePattern(pattern))
    }
    case 'oneOf':
      return wrong('/text', 'or /html is required')
    default: {
      const words = expectation(keyword, broken) ?? breach.message ?? ''
      return wrong(at(), keyword === 'type' && instancePath !== '' ? words + suchAs(broken) : words)
    }
  }
}

/**
 * Returns one breach for each cause. A `oneOf` and its branches become the first branch breach at a deeper value, or else
 * the `oneOf` itself. The breach of `propertyNames` also replaces the breach of its pattern.
 */
function causes(breaches: readonly Breach[]): Breach[] {
  const choices = breaches.filter(({ keyword }) => keyword === 'oneOf')
  const isBranchOf = ({ schemaPath }: Breach, choice: Breach) =>
    schemaPath.startsWith(`${choice.schemaPath}/`)
  return breaches
    .filter(({ propertyName }) => propertyName === undefined)
    .filter((breach) => !choices.some((choice) => isBranchOf(breach, choice)))
    .map((breach) => {
      if (breach.keyword !== 'oneOf') return breach
      const isDeeper = ({ instancePath }: Breach) => instancePath.length > breach.instancePath.length
      return breaches.find((branch) => isBranchOf(branch, breach) && isDeeper(branch)) ?? breach
    })
}

/** An example of a list, or of an object with only its required members. */
function suchAs({ required = [], examples = [] }: Broken): string {
  const [example] = examples
  if (typeof example !== 'object' || example === null) return ''
  const needed = Object.entries(example).filter(([name]) => required.includes(name))
  const text = written(Array.isArray(example) ? example : Object.fromEntries(needed))
  return text === '{}' || text.length > maxExample ? '' : `, such as ${text}`
}

/** Returns JSON in one line, with spaces for readability. */
function written(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(written).join(', ')}]`
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${written(member)}`)
  return `{${members.join(', ')}}`
}

/** Lists the known names, if there are any: a wrong name is most often a misspelling of one of them. */
function knownTo({ properties = {} }: Broken): string {
  const names = Object.keys(properties)
  return names.length === 0 ? '' : ` (known: ${names.join(', ')})`
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
      return 'must not have duplicate entries'
    default:
      return wholeExpectation(broken)
  }
}

const formatWords: Readonly<Record<string, string>> = {
  'idn-email': 'must be an email address',
  email: 'must have the form of an email address',
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

/** The expectation of a whole value; null if the schema does not state one. */
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

/** Names come from the caller and may be megabytes long. */
function shorten(pointer: string): string {
  return pointer.length <= maxPointer ? pointer : `${pointer.slice(0, maxPointer)}…`
}
