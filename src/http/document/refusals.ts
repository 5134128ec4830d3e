// Errors in the OpenAPI document: one shared answer for each status and set of codes.
import { STATUS_CODES } from 'node:http'
import { type ErrorCode, errorTable } from '../errors.ts'
import { Refusal } from '../schemas/refusal.ts'
import { headersOf } from './headers.ts'

export interface RefusalResponse {
  description: string
  headers: Record<string, object>
  content: Record<string, object>
}

const mostNamed = 3

/** Collects the refusals of operations and names them by status and codes: `ForbiddenOrInboxNotAllowed`, `InboxDeleted`. */
export class Refusals {
  readonly responses: Record<string, RefusalResponse> = {}
  readonly #usual: ReadonlySet<ErrorCode>
  readonly #names = new Map<string, string>()

  /** `usual` are the codes of nearly every operation: names contain only the other codes. */
  constructor(usual: readonly ErrorCode[]) {
    this.#usual = new Set(usual)
  }

  /** Returns a reference for each status that one of the codes has. */
  refer(operationId: string, codes: readonly ErrorCode[]): Record<string, { $ref: string }> {
    const byStatus = Map.groupBy(codes, (code) => errorTable[code][0])
    return Object.fromEntries(
      [...byStatus].map(([status, named]) => {
        const name = this.#name(operationId, status, named)
        return [status, { $ref: `#/components/responses/${name}` }]
      }),
    )
  }

  #name(operationId: string, status: number, codes: ErrorCode[]): string {
    const written = codes.join(' ')
    const known = this.#names.get(written)
    if (known !== undefined) return known
    const name = this.#newName(operationId, status, codes)
    if (this.responses[name]) throw new Error(`two answers would be called ${name}`)
    this.responses[name] = describeRefusal(status, codes)
    this.#names.set(written, name)
    return name
  }

  #newName(operationId: string, status: number, codes: ErrorCode[]): string {
    const phrase = inPascalCase(STATUS_CODES[status]!)
    const further = codes.filter((code) => !this.#usual.has(code)).map(inPascalCase)
    if (further.length > mostNamed) return inPascalCase(operationId) + phrase
    const usual = [...this.#usual].filter((code) => errorTable[code][0] === status)
    const missing = usual.filter((code) => !codes.includes(code)).map(inPascalCase)
    const without = missing.length > 0 ? `Without${missing.join('And')}` : ''
    return (usual.length > 0 ? [phrase, ...further] : further).join('Or') + without
  }
}

function inPascalCase(words: string): string {
  return words.replace(/(?:^|[ _])([a-z])/gi, (_, letter: string) => letter.toUpperCase())
}

function describeRefusal(status: number, codes: ErrorCode[]): RefusalResponse {
  const lines = codes.map((code) => `- \`${code}\`: ${errorTable[code][1]}`)
  const schema = {
    allOf: [
      { $ref: `#/components/schemas/${Refusal.definition.$id}` },
      { type: 'object', required: ['error'], properties: { error: { type: 'string', enum: codes } } },
    ],
  }
  const examples = Object.fromEntries(
    codes.map((code) => [code, { value: { error: code, message: errorTable[code][1] } }]),
  )
  return {
    description: lines.join('\n'),
    headers: headersOf(status, { codes }),
    content: { 'application/json': { schema, examples } },
  }
}
