// The required proofs: every status of the specification's tables, and every status and code of the OpenAPI document.
import type { Operation } from './document.ts'

/** A status that an operation can answer. The code is null for a success, or if only the status is known. */
export interface Required {
  operation: string
  status: number
  code: string | null
}

interface Listed {
  operation: string
  statuses: number[]
}

/** The contract lists this answer, but the service never gives it: a page ends early instead (decisions/0056). */
const neverAnswered = 'GET /v1/inboxes/{inboxId}/export 413'

/** Returns the operations of the specification's endpoint tables, in order, with the statuses listed for them. */
export function readEndpointTables(specification: string): Listed[] {
  const rows = specification.matchAll(/^\| (GET|POST|PUT|PATCH|DELETE) `(\/v1\/[^`]+)` \|(.*)\|$/gm)
  return [...rows].map(([, method, path, rest]) => {
    const cells = rest!.split(/(?<!\\)\|/)
    const [success = '', errors = ''] = cells.slice(-2)
    const statuses = [...`${/^ *\d{3}/.exec(success)?.[0] ?? ''} ${errors}`.matchAll(/\b[2-5]\d\d\b/g)]
    return { operation: `${method} ${path}`, statuses: statuses.map(([status]) => Number(status)) }
  })
}

/** Returns the operations that the decisions name in full. Their parameter names may differ, so only the shape counts. */
export function readNamedOperations(decisions: string): string[] {
  const named = decisions.matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/v1\/[^\s`]+)`/g)
  return [...new Set([...named].map(([, method, path]) => `${method} ${path}`))]
}

/** Replaces the names of an operation's parameters. */
export const shapeOf = (operation: string): string => operation.replace(/\{\w+\}/g, '{}')

/**
 * Returns all required proofs, in the order of the specification, then of the document. Includes operations missing in
 * the document.
 */
export function listRequired(
  texts: { specification: string; decisions: string } | null,
  documented: readonly Operation[],
): Required[] {
  const listed = texts ? readEndpointTables(texts.specification) : []
  const known = new Map(documented.map((operation) => [shapeOf(operation.name), operation]))
  const named = texts ? readNamedOperations(texts.decisions) : []
  const order = [...listed.map(({ operation }) => operation), ...named, ...documented.map(({ name }) => name)]
  const byShape = Map.groupBy(order, shapeOf)
  return [...byShape].flatMap(([shape, [first]]) => {
    const operation = known.get(shape)
    const statuses = listed.find((one) => shapeOf(one.operation) === shape)?.statuses ?? []
    return requiredOf(operation?.name ?? first!, operation, statuses)
  })
}

function requiredOf(name: string, operation: Operation | undefined, statuses: number[]): Required[] {
  const documented = operation
    ? [{ status: operation.success.status, code: null }, ...operation.refusals]
    : []
  const beyond = statuses.filter((status) => !documented.some((one) => one.status === status))
  const all = [...documented, ...beyond.map((status) => ({ status, code: null }))]
  // For an operation that is only named, we know only that it succeeds.
  if (all.length === 0) return [{ operation: name, status: 200, code: null }]
  return all
    .filter(({ status }) => `${name} ${status}` !== neverAnswered)
    .map(({ status, code }) => ({ operation: name, status, code }))
    .sort((a, b) => a.status - b.status)
}
