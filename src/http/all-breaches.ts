// Everything that a refused request breaks. What judges requests stops at the first breach, for who sends it millions.
import type { FastifyRequest, FastifyServerOptions } from 'fastify'
import type { Breach } from './breaches.ts'

type Validator = Parameters<NonNullable<NonNullable<FastifyServerOptions['ajv']>['onCreate']>>[0]
type Check = ((value: unknown) => unknown) & { errors?: unknown }

/** Beyond these a list of all breaches could cost more than the request itself: it is told its first alone. */
const maxValues = 1_000
const maxCharacters = 256 * 1024

export class BreachFinder {
  #validator: Validator | null = null
  readonly #checks = new WeakMap<object, Check>()
  /** Schemas that others refer to, by their ids. */
  readonly #shared = new Set<string>()

  /** Takes after the validator that judges requests, which has its formats by now. */
  takeAfter(validator: Validator): void {
    const Kind = validator.constructor as new (options: object) => Validator
    this.#validator = new Kind({ ...validator.opts, allErrors: true })
    Object.assign(this.#validator.formats, validator.formats)
  }

  /** All breaches of a small body or query of which `first` is known; else those. */
  find(request: FastifyRequest, context: string | undefined, first: readonly Breach[]): readonly Breach[] {
    const value = context === 'body' ? request.body : context === 'querystring' ? request.query : undefined
    if (value === undefined || !isSmall(value)) return first
    const check = this.#checkFor(request, context as 'body' | 'querystring')
    if (!check || check(value)) return first
    return check.errors as Breach[]
  }

  #checkFor({ server, routeOptions }: FastifyRequest, part: 'body' | 'querystring'): Check | null {
    const schema = routeOptions.schema?.[part] as (object & { $id?: string }) | undefined
    if (!schema || !this.#validator) return null
    const known = this.#checks.get(schema)
    if (known) return known
    for (const [id, shared] of Object.entries(server.getSchemas())) {
      if (this.#shared.has(id)) continue
      this.#shared.add(id)
      this.#validator.addSchema(shared as object, id)
    }
    const check = this.#validator.compile(schema) as Check
    this.#checks.set(schema, check)
    return check
  }
}

function isSmall(value: unknown): boolean {
  const left = [value]
  let characters = 0
  for (let count = 0; left.length > 0; count++) {
    const next = left.pop()
    if (typeof next === 'string') characters += next.length
    else if (typeof next === 'object' && next !== null) {
      const members = Object.entries(next)
      if (members.length > maxValues) return false
      for (const [name, member] of members) {
        characters += name.length
        left.push(member)
      }
    }
    if (count > maxValues || characters > maxCharacters) return false
  }
  return true
}
