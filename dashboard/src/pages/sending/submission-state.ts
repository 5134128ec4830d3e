// The state of a send in one word, the same in lists, in the overview, and on its page.
import type { Schemas } from '../../api/client.ts'

/** Refines the API's status by the states of its recipients: deferred instead of pending, bounced instead of failed. */
export function stateOf({ status, recipients, failureCode }: Schemas['Submission']): string {
  const [only, ...others] = new Set(recipients.map((recipient) => recipient.status))
  if (status === 'pending')
    return recipients.some((recipient) => recipient.status === 'deferred') ? 'deferred' : status
  if (status !== 'failed') return status
  if (failureCode === 'cancelled') return 'cancelled'
  return only !== undefined && others.length === 0 ? only : status
}
