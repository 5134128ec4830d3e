// Writes the schemas of the API as types of Python.
import { isField, literal, pascalCase, wrap } from './names.ts'
import { type ApiDocument, nameOf, type Schema } from './schema.ts'

const head = `"""The objects of the API, as JSON has them. Generated from the OpenAPI document."""

from __future__ import annotations

from typing import Literal, NotRequired, Protocol, TypeAlias, TypedDict


class ReadableBytes(Protocol):
    """A binary file object, such as open(path, "rb")."""

    def read(self) -> bytes: ...`

/** The unions of events. Each member has the id of the event too, which the API sends outside of the body. */
const eventUnions = ['WebhookEvent', 'StreamEvent']
const scalars: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
}

export class PythonTypes {
  readonly #schemas: ApiDocument['components']['schemas']
  /** The definition of each name. */
  readonly #definitions = new Map<string, string>()
  readonly #prefix: string

  /** `prefix` goes before the name of each type where another module uses it. */
  constructor({ components }: ApiDocument, prefix: string) {
    this.#schemas = components.schemas
    this.#prefix = prefix
  }

  /** Returns the type of a value. `name` is for an object that has none. */
  typeOf(schema: Schema, name: string, prefix = this.#prefix): string {
    if (schema.$ref !== undefined) return this.#named(nameOf(schema.$ref), prefix)
    const union = schema.anyOf ?? schema.oneOf
    if (union && !schema.properties) return union.map((one) => this.typeOf(one, name, prefix)).join(' | ')
    if (schema.enum) return writeEnum(schema.enum)
    const types = [schema.type ?? []].flat()
    // Python's int is a float to type checkers.
    return types.map((type) => this.#typeOfKind(type, schema, { name, prefix })).join(' | ')
  }

  /** The module of all types that were used. */
  write(): string {
    // A class must follow its base, and an alias is a text, so order does not matter otherwise.
    return `${[head, ...this.#definitions.values()].join('\n\n\n')}\n`
  }

  #typeOfKind(type: string, schema: Schema, { name, prefix }: { name: string; prefix: string }): string {
    if (type === 'array') return `list[${this.typeOf(schema.items!, `${name}Item`, prefix)}]`
    if (type !== 'object') return scalars[type]!
    if (schema.properties) {
      this.#define(name, schema)
      return prefix + name
    }
    const values = schema.additionalProperties
    return `dict[str, ${typeof values === 'object' ? this.typeOf(values, `${name}Value`, prefix) : 'object'}]`
  }

  #named(name: string, prefix: string): string {
    const schema = this.#schemas[name]!
    const isUnion = schema.oneOf !== undefined && !schema.properties
    if (!isUnion && !schema.properties) return this.typeOf(schema, name, prefix)
    this.#define(name, schema)
    return prefix + name
  }

  #define(name: string, schema: Schema): void {
    if (this.#definitions.has(name)) return
    this.#definitions.set(name, '')
    const definition = schema.properties
      ? this.#writeObject(name, schema)
      : `${name}: TypeAlias = ${literal(this.typeOf({ oneOf: schema.oneOf! }, name, ''))}`
    // Again at the end, so that a class follows the classes that it uses.
    this.#definitions.delete(name)
    this.#definitions.set(name, definition)
  }

  #writeObject(name: string, schema: Schema): string {
    const members = Object.entries(schema.properties!).map(([member, written]) => {
      const type = this.#typeOfMember(name, member, written)
      const isRequired = schema.required?.includes(member) ?? false
      return { member, written, type: isRequired ? type : `NotRequired[${type}]` }
    })
    if (this.#isEvent(name)) {
      const type = name === 'StreamResetEvent' ? 'str | None' : 'str'
      members.unshift({ member: 'id', written: { description: 'The id of the event.' }, type })
    }
    const others = members.filter(({ member }) => !isField(member))
    const fields = members.filter(({ member }) => isField(member))
    const pairs = others.map(({ member, type }) => `${literal(member)}: ${literal(type)}`)
    const base = others.length > 0 ? `_${name} = TypedDict("_${name}", {${pairs.join(', ')}})\n\n\n` : ''
    const lines = fields.flatMap(({ member, written, type }) => [
      ...wrap(this.#describe(written), 110)
        .filter(Boolean)
        .map((line) => `    # ${line}`),
      `    ${member}: ${type}`,
    ])
    const about = schema.description ? [`    """${schema.description}"""`, ''] : []
    const body = [...about, ...lines]
    return `${base}class ${name}(${others.length > 0 ? `_${name}` : 'TypedDict'}):\n${(body.length > 0 ? body : ['    pass']).join('\n')}`
  }

  #typeOfMember(name: string, member: string, schema: Schema): string {
    if (name === 'GivenAttachment' && member === 'content') return 'str | bytes | ReadableBytes'
    return this.typeOf(schema, name + pascalCase(member), '')
  }

  /** The description of a member. That of a named object is in the docstring of its class. */
  #describe({ description, $ref }: Schema): string {
    const named = $ref === undefined ? undefined : this.#schemas[nameOf($ref)]
    return description ?? (named?.properties || named?.oneOf ? '' : (named?.description ?? ''))
  }

  #isEvent(name: string): boolean {
    return eventUnions.some((union) =>
      this.#schemas[union]!.oneOf!.some(({ $ref }) => nameOf($ref!) === name),
    )
  }
}

function writeEnum(values: readonly (string | boolean | null)[]): string {
  const words = values
    .filter((value) => value !== null)
    .map((value) => (typeof value === 'string' ? literal(value) : value ? 'True' : 'False'))
  return `Literal[${words.join(', ')}]${values.includes(null) ? ' | None' : ''}`
}
