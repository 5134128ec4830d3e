// The meaning of a delivery's last answer in words, with advice.
import { callMeanings } from '../../texts/webhooks.ts'
import type { Delivery } from './queries.ts'

/** The service's error texts for failed calls, and their meanings. */
const faults: [pattern: RegExp, meaning: string][] = [
  [/deleted/, callMeanings.deleted],
  [/endpoint is disabled/, callMeanings.disabled],
  [/no answer within|took too long/, callMeanings.timeout],
  [/public address/, callMeanings.address],
  [/signing secret/, callMeanings.secret],
  [/^TLS:/, callMeanings.tls],
  [/no address|DNS/, callMeanings.dns],
]

/** Returns sentences: what happened, then what comes next. */
export function meaningOf({ status, attempts, responseStatus, error }: Delivery): string[] {
  if (status === 'succeeded') return [callMeanings.succeeded]
  if (attempts === 0 && status === 'pending') return [callMeanings.waiting]
  const what = responseStatus === null ? meaningOfFault(error ?? '') : meaningOfStatus(responseStatus)
  const isOver = [callMeanings.deleted, callMeanings.gone, callMeanings.disabled].includes(what)
  if (isOver) return [what]
  return [what, status === 'pending' ? callMeanings.retrying : callMeanings.givenUp]
}

function meaningOfFault(error: string): string {
  return faults.find(([pattern]) => pattern.test(error))?.[1] ?? callMeanings.connection
}

function meaningOfStatus(status: number): string {
  if (status === 410) return callMeanings.gone
  if (status >= 300 && status < 400) return callMeanings.redirect
  if (status === 401 || status === 403 || status === 407) return callMeanings.signIn
  if (status === 404 || status === 405) return callMeanings.notFound
  if (status === 429) return callMeanings.tooMany
  return status >= 500 ? callMeanings.broken : callMeanings.refused
}
