// What a send is refused by once it was drafted: the code as the database gives it, with the words for what is gone.
import { type RefusalCode, ServiceError } from '../../base/errors.ts'
import type { SendDraft } from './send-draft.ts'

/** `not_found`: the inbox is gone since, and the thread with it. */
export function refuseSend(
  { operation }: Pick<SendDraft, 'operation'>,
  { code, retryAfterSeconds }: { code: RefusalCode; retryAfterSeconds?: number | null | undefined },
): ServiceError {
  const gone = `There is no such ${operation === 'reply' ? 'thread' : 'inbox'}.`
  return new ServiceError(code, code === 'not_found' ? gone : undefined, retryAfterSeconds ?? undefined)
}
