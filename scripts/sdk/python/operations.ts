// Writes the operations of the API as methods of Python, by the names of sdk/operations.json.
import { readOperations, type SdkOperation } from '../operations.ts'
import { docstring, literal, pascalCase, snakeCase } from './names.ts'
import { type ApiDocument, type ApiOperation, nameOf, type Parameter, type Schema } from './schema.ts'
import type { PythonTypes } from './types.ts'

/** Classes whose methods have some arguments bound to attributes. */
const bound = [
  {
    name: 'AsyncBoundMessages',
    about: 'Messages of one inbox.',
    arguments: ['inbox_id'],
    methods: { send: 'messages.send', list: 'messages.list' },
  },
  {
    name: 'AsyncBoundThread',
    about: 'The thread of one message.',
    arguments: ['thread_id', 'target_message_id'],
    methods: { reply: 'threads.reply', messages: 'threads.messages' },
  },
]

const head = `"""The operations of the API. Generated from the OpenAPI document and operations.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from .. import types
from .._policy import OMITTED, Call, Omitted, Operation, given
from .caller import AsyncCaller
from .download import AsyncDownload
from .pages import AsyncPages`

/** Returns the module. Throws if an operation of the document has no name, or a name has no operation. */
export function writeOperations(text: string, types: PythonTypes): string {
  const writer = new OperationWriter(text, types)
  return `${[head, writer.constants(), ...writer.parts(), writer.client(), ...writer.handles()].join('\n\n')}\n`
}

class OperationWriter {
  readonly #document: ApiDocument
  readonly #operations: SdkOperation[]
  readonly #types: PythonTypes

  constructor(text: string, types: PythonTypes) {
    this.#document = JSON.parse(text) as ApiDocument
    // The stream is written by hand.
    this.#operations = readOperations(text).filter(({ isStream }) => !isStream)
    this.#types = types
  }

  constants(): string {
    const lines = this.#operations.map(({ operationId, method, path, hasKey, isOnce }) => {
      const flags = [hasKey && 'takes_key=True', isOnce && 'is_once=True'].filter(Boolean)
      const given = [literal(method), literal(path.replace(/\{\w+\}/g, '{}')), ...flags]
      return `${constantOf(operationId)} = Operation(${given.join(', ')})`
    })
    return [...new Set(lines)].join('\n')
  }

  parts(): string[] {
    return [...this.#byPart()].map(([part, operations]) => {
      const methods = operations.map((one) => this.#method(one.verb, one, []))
      return `\n${[...classHead(classOf(part), `\`${part}\` of a client.`, []), ...methods].join('\n')}`
    })
  }

  client(): string {
    const own = this.#operations.filter(({ part }) => part === '')
    const parts = [...this.#byPart().keys()].map((part) => `        self.${part} = ${classOf(part)}(caller)`)
    const head = classHead('AsyncOperations', 'The operations of a client.', [])
    return `\n${[...head, ...parts, ...own.map((one) => this.#method(one.verb, one, []))].join('\n')}`
  }

  handles(): string[] {
    return bound.map(({ name, about, arguments: names, methods }) => {
      const written = Object.entries(methods).map(([method, named]) => {
        const operation = this.#operations.find(({ part, verb }) => `${part}.${verb}` === named)!
        return this.#method(method, operation, names)
      })
      return `\n${[...classHead(name, about, names), ...written].join('\n')}`
    })
  }

  #byPart(): Map<string, SdkOperation[]> {
    return Map.groupBy(
      this.#operations.filter(({ part }) => part !== ''),
      ({ part }) => part,
    )
  }

  #method(name: string, sdk: SdkOperation, boundNames: readonly string[]): string {
    const id = sdk.operationId
    const operation = this.#document.paths[sdk.path]![sdk.method.toLowerCase()]!
    const parameters = (operation.parameters ?? []).map((one) => this.#resolve(one))
    const ids = sdk.ids.map(snakeCase)
    const query = parameters.filter((one) => one.in === 'query')
    const body = this.#body(operation)
    const fields = [...query.map(fieldOfParameter), ...fieldsOf(body)]
    const options = [
      ...(sdk.hasKey ? ['idempotency_key: str | None = None'] : []),
      'deadline: float | None = None',
    ]
    const signature = [
      'self',
      ...ids.filter((one) => !boundNames.includes(one)).map((one) => `${one}: str`),
      '*',
      ...fields
        .filter(({ name }) => !boundNames.includes(snakeCase(name)))
        .sort((a, b) => Number(b.isRequired) - Number(a.isRequired))
        .map((field) => this.#argument(field, id)),
      ...options,
    ]
    const variable = (one: string) => (boundNames.includes(one) ? `self._${one}` : one)
    const call = [
      constantOf(id),
      ...(ids.length > 0 ? [`ids=(${ids.map(variable).join(', ')},)`] : []),
      ...(query.length > 0 ? [`query=${writeGiven(query.map(fieldOfParameter), variable)}`] : []),
      ...(body ? [`body=${writeGiven(fieldsOf(body), variable)}`] : []),
      ...(sdk.hasKey ? ['idempotency_key=idempotency_key'] : []),
      'deadline=deadline',
    ]
    const { returned, statement, isAsync } = this.#answer(sdk, operation, call)
    return [
      '',
      `    ${isAsync ? 'async ' : ''}def ${snakeCase(name)}(`,
      ...signature.map((one) => `        ${one},`),
      `    ) -> ${returned}:`,
      ...docstring(`${sdk.summary}.`, sdk.description, 8),
      ...statement,
    ].join('\n')
  }

  /** The type that a method returns, and the statement that returns it. */
  #answer({ answer, items, operationId }: SdkOperation, operation: ApiOperation, call: string[]) {
    const written = `Call(${['', ...call.map((one) => `            ${one},`), '        )'].join('\n')}`
    const returns = (returned: string, by: string) => ({
      returned,
      statement: [`        return await self._caller.${by}(${written})`],
      isAsync: true,
    })
    if (answer === 'nothing') return returns('None', 'nothing')
    if (answer === 'text') return returns('str', 'text')
    if (answer === 'bytes') return returns('AsyncDownload', 'download')
    const [, success] = Object.entries(operation.responses).find(([status]) => status < '300')!
    const { schema } = success.content!['application/json']!
    const type = this.#types.typeOf(schema, operationId)
    if (items === undefined) {
      const statement = [
        `        answer: ${type} = await self._caller.json(${written})`,
        '        return answer',
      ]
      return { returned: type, statement, isAsync: true }
    }
    const page = this.#document.components.schemas[nameOf(schema.$ref!)]!
    const item = this.#types.typeOf(page.properties![items]!.items!, '')
    const pages = `AsyncPages(self._caller, ${written}, ${literal(items)})`
    return {
      returned: `AsyncPages[${item}, ${type}]`,
      statement: [`        return ${pages}`],
      isAsync: false,
    }
  }

  #argument({ name, schema, isRequired }: Field, id: string): string {
    const written = this.#types.typeOf(schema, pascalCase(id) + pascalCase(name))
    // Any sequence will do, where a list is only read.
    const type = written.replace(/^list\[/, 'Sequence[').replace(/^dict\[/, 'Mapping[')
    if (isRequired) return `${snakeCase(name)}: ${type}`
    if (isNullable(schema)) return `${snakeCase(name)}: ${type} | Omitted = OMITTED`
    return `${snakeCase(name)}: ${type} | None = None`
  }

  #body({ requestBody }: ApiOperation): Schema | null {
    const ref = requestBody?.content['application/json']?.schema.$ref
    return ref ? this.#document.components.schemas[nameOf(ref)]! : null
  }

  #resolve(parameter: Parameter): Parameter {
    return parameter.$ref ? this.#document.components.parameters[nameOf(parameter.$ref)]! : parameter
  }
}

interface Field {
  name: string
  schema: Schema
  isRequired: boolean
}

function fieldOfParameter({ name, schema, required = false }: Parameter): Field {
  return { name, schema, isRequired: required }
}

function fieldsOf(body: Schema | null): Field[] {
  const members = Object.entries(body?.properties ?? {})
  return members.map(([name, schema]) => ({
    name,
    schema,
    isRequired: body!.required?.includes(name) ?? false,
  }))
}

function isNullable({ type }: Schema): boolean {
  return Array.isArray(type) && type.includes('null')
}

function writeGiven(fields: readonly Field[], variable: (name: string) => string): string {
  const members = fields.map(({ name }) => `                ${literal(name)}: ${variable(snakeCase(name))},`)
  const nullable = fields.filter(({ schema }) => isNullable(schema)).map(({ name }) => `${literal(name)},`)
  const second = nullable.length > 0 ? `, nullable=(${nullable.join(' ')})` : ''
  return `given({\n${members.join('\n')}\n            }${second})`
}

function classHead(name: string, about: string, boundNames: readonly string[]): string[] {
  const given = ['self', 'caller: AsyncCaller', ...boundNames.map((one) => `${one}: str`)]
  return [
    `class ${name}:`,
    `    """${about}"""`,
    '',
    `    def __init__(${given.join(', ')}) -> None:`,
    '        self._caller = caller',
    ...boundNames.map((one) => `        self._${one} = ${one}`),
  ]
}

function classOf(group: string): string {
  return `Async${group[0]!.toUpperCase()}${group.slice(1)}`
}

function constantOf(operationId: string): string {
  return `_${snakeCase(operationId).toUpperCase()}`
}
