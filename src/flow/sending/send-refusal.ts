// Turns the refusal code that the database returns for a send into an error with its text.
import { type RefusalCode, ServiceError } from '../../base/errors.ts'
import type { SendLimit } from '../../store/sending/sends.ts'
import type { SendingCaller } from '../caller.ts'
import type { SendDraft } from './send-draft.ts'

interface Refusal {
  code: RefusalCode
  retryAfterSeconds?: number | null | undefined
  limit?: SendLimit | null
}

/** `not_found`: the inbox was deleted meanwhile, and its thread with it. */
export function refuseSend(
  { limits }: Pick<SendingCaller, 'limits'>,
  { operation }: Pick<SendDraft, 'operation'>,
  { code, retryAfterSeconds, limit }: Refusal,
): ServiceError {
  const seconds = retryAfterSeconds ?? undefined
  if (code === 'not_found')
    return new ServiceError(code, `There is no such ${operation === 'reply' ? 'thread' : 'inbox'}.`)
  if (!limit) return new ServiceError(code, undefined, seconds)
  const size = limits[limit]
  const { words, windowSeconds } = windows[limit]
  const detail = `This message exceeds ${limit}: at most ${size} ${words}. Try again in ${seconds} seconds.`
  return new ServiceError(code, detail, seconds, { name: limit, size, windowSeconds })
}

const windows: Record<SendLimit, { words: string; windowSeconds: number }> = {
  messagesPerMinute: { words: 'messages in 60 seconds', windowSeconds: 60 },
  messagesPerDay: { words: 'messages in a UTC day', windowSeconds: 86_400 },
  recipientsPerDay: { words: 'recipients in a UTC day', windowSeconds: 86_400 },
}
