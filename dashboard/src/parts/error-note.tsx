// An error in the API's own words, with advice.
import { TriangleAlert } from 'lucide-react'
import { ApiError } from '../api/client.ts'
import { parts } from '../texts/parts.ts'
import { Button } from './form/button.tsx'

/** Returns the words for a failure: the API's message, or that the service does not answer. */
export function wordsOf(error: unknown): { title: string; hint: string | null } {
  if (error instanceof ApiError) {
    const wait = error.retryAfterSeconds
    return { title: error.message, hint: wait === null ? null : parts.waitSeconds(wait) }
  }
  if (error instanceof TypeError) return { title: parts.noConnection, hint: parts.noConnectionWhat }
  return { title: parts.failed, hint: error instanceof Error ? error.message : null }
}

/** Returns whether the requested object does not exist. A retry cannot change that. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 410)
}

/** Renders nothing without an error. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (!error) return null
  const { title, hint } = wordsOf(error)
  return (
    <div role="alert" className="flex items-start gap-2.5 rounded-md bg-bad-soft px-3 py-2.5 text-bad">
      <TriangleAlert size={16} className="mt-[3px] shrink-0" aria-hidden />
      <div className="min-w-0 flex-1">
        <p className="font-medium break-words">{title}</p>
        {hint && <p className="text-sm">{hint}</p>}
      </div>
      {onRetry && (
        <Button size="small" onClick={onRetry}>
          {parts.retry}
        </Button>
      )}
    </div>
  )
}
