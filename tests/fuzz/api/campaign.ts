// Many requests of one operation, generated from its document: valid ones, ones with one breach, and ones at every bound.
import fc from 'fast-check'
import { type Boundary, boundariesOf } from './boundary.ts'
import { type Breach, breachArbitrary, breachesOf } from './breach.ts'
import { type Answer, faultOf, type Operation } from './document.ts'
import { type Draft, exampleDraft, validDraft } from './generate.ts'
import { fuzzStream } from './stream.ts'
import type { Sent, World } from './world.ts'

export type Way = 'valid' | 'invalid' | 'boundary'
export const ways: readonly Way[] = ['valid', 'invalid', 'boundary']

/** Counts the outcomes of one operation's requests, generated in one way. */
export interface Tally {
  operation: string
  way: Way
  requests: number
  byStatus: Map<number, number>
}

/** Requests sent at the same time, so that they overlap. */
const batch = 20

/**
 * The service checks shape before anything that depends on stored data. A forged cursor does not count as a breach of
 * shape.
 */
const shapeCodes = new Set(['invalid_request', 'invalid_json', 'invalid_idempotency_key'])
/** The world's key may do everything, so no valid request is refused for its caller or for its route. */
const callerCodes = new Set([
  ...['route_not_found', 'unauthorized', 'rate_limited', 'organization_inactive'],
  ...['insufficient_scope', 'inbox_not_allowed', 'send_mode_reply_only', 'recipient_domain_not_allowed'],
  'recipient_not_confirmed',
])

/** Sends at least `requests` requests, each bound once. Throws with the smallest request found that shows a fault. */
export async function fuzz(
  world: World,
  operation: Operation,
  way: Way,
  { requests, seed }: { requests: number; seed: number },
): Promise<Tally> {
  const tally: Tally = { operation: operation.name, way, requests: 0, byStatus: new Map() }
  const countStatus = (status: number) => {
    tally.requests++
    tally.byStatus.set(status, (tally.byStatus.get(status) ?? 0) + 1)
  }
  const count = ({ status }: Answer) => countStatus(status)
  if (way === 'boundary') await fuzzBoundaries(world, operation, count)
  else if (way === 'invalid')
    await search(world, operation, invalidRequests(operation), { requests, seed, count })
  else if (operation.name === 'GET /v1/events')
    await fuzzStream(world.base, world.caller.secret, { requests, seed, count: countStatus })
  else await search(world, operation, validRequests(operation), { requests, seed, count })
  return tally
}

interface Request {
  draft: Draft
  breach?: Breach
  /** Returns a fault that the document's schemas cannot show, or null. */
  judge(answer: Answer): string | null
}

function validRequests(operation: Operation): fc.Arbitrary<Request> {
  const judge = (answer: Answer) => {
    const code = codeOf(answer)
    if (shapeCodes.has(code)) return 'the request is as the document says, and was refused for its form'
    return callerCodes.has(code) ? 'the caller may ask for this' : null
  }
  return validDraft(operation).map((draft) => ({ draft, judge }))
}

function invalidRequests(operation: Operation): fc.Arbitrary<Request> {
  const breaches = breachArbitrary(breachesOf(operation))
  return fc.record({ draft: validDraft(operation), breach: breaches }).map(({ draft, breach }) => ({
    // The service checks a forged cursor only after the rest of the request.
    draft: { ...draft, query: draft.query.filter(([name]) => name !== 'cursor') },
    breach,
    judge: (answer) => expect(answer, breach),
  }))
}

function expect(answer: Answer, { answers }: Breach): string | null {
  const code = codeOf(answer)
  const isRight = answers.some(([status, wanted]) => answer.status === status && code === wanted)
  return isRight ? null : `${answers.map((one) => one.join(' ')).join(' or ')} was to come`
}

function codeOf({ status, body }: Answer): string {
  return status >= 400 ? JSON.parse(body.toString()).error : ''
}

async function search(
  world: World,
  operation: Operation,
  request: fc.Arbitrary<Request>,
  { requests, seed, count }: { requests: number; seed: number; count(answer: Answer): void },
): Promise<void> {
  const size = Math.min(batch, requests)
  const property = fc.asyncProperty(
    fc.array(request, { minLength: size, maxLength: size }),
    async (together) => {
      await world.refill()
      await Promise.all(together.map((one) => ask(world, operation, one, count)))
    },
  )
  const found = await fc.check(property, { numRuns: Math.ceil(requests / size), seed })
  if (!found.failed) return
  const { message } = found.errorInstance as Error
  throw new Error(
    `${message}\n(seed ${seed}, ${found.numRuns} batches, ${found.numShrinks} times made smaller)`,
  )
}

async function ask(
  world: World,
  operation: Operation,
  { draft, breach, judge }: Request,
  count: (answer: Answer) => void,
): Promise<void> {
  const { sent, answer } = await world.send(operation, draft, breach)
  count(answer)
  const isRouted = !breach?.answers.some(([, code]) => code === 'route_not_found' && code === codeOf(answer))
  const fault = (isRouted ? faultOf(operation, answer) : null) ?? judge(answer)
  if (fault === null) return
  const because = breach ? ` with ${breach.what}` : ''
  throw new Error(
    `${operation.name}${because}: ${fault}\n${written(sent)}\n${answer.status} ${clip(answer.body.toString())}`,
  )
}

function written({ method, target, headers, body }: Sent): string {
  const shown = Object.entries(headers).filter(([name]) => name !== 'x-api-key')
  return `${method} ${clip(target)} ${JSON.stringify(Object.fromEntries(shown))} ${clip(body?.toString() ?? '')}`
}

function clip(text: string): string {
  return text.length <= 1_500 ? text : `${text.slice(0, 1_400)}… (${text.length} characters)`
}

async function fuzzBoundaries(
  world: World,
  operation: Operation,
  count: (answer: Answer) => void,
): Promise<void> {
  for (const boundary of boundariesOf(operation)) {
    await world.refill()
    await ask(world, operation, requestAt(boundary, exampleDraft(operation)), count)
  }
}

function requestAt({ what, change, isTaken }: Boundary, draft: Draft): Request {
  const breach: Breach = { what, answers: [], draft: change }
  const judge = (answer: Answer) => {
    const code = codeOf(answer)
    if (callerCodes.has(code)) return 'the caller may ask for this'
    if (isTaken) return shapeCodes.has(code) ? 'what is at the bound is refused' : null
    // An empty cursor was never issued by a list.
    return shapeCodes.has(code) || code === 'invalid_cursor' ? null : 'what is past the bound is taken'
  }
  return { draft, breach, judge }
}
