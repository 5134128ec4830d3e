// The location within the mail pages: inbox, thread, search and draft are all in the address.
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useRef } from 'react'

/** In an address, this id means all inboxes. */
export const allInboxes = 'all'

export interface Filters {
  q?: string | undefined
  direction?: string | undefined
  from?: string | undefined
  /** A day, `2026-11-23`. */
  since?: string | undefined
}

export interface Place extends Filters {
  inboxId: string | undefined
  threadId: string | undefined
  /** The requested message of the thread. */
  message: string | undefined
  /** The kind of draft: `new`, `reply` or `all`. */
  compose: string | undefined
  /** The message that a reply answers. */
  to: string | undefined
  /** The first recipient of a new message. */
  rcpt: string | undefined
}

export function usePlace(): Place {
  const { inboxId, threadId } = useParams({ strict: false }) as Pick<Place, 'inboxId' | 'threadId'>
  const { q, direction, from, since, message, compose, to, rcpt } = useSearch({
    strict: false,
  }) as Partial<Place>
  return { inboxId, threadId, q, direction, from, since, message, compose, to, rcpt }
}

export function filtersOf({ q, direction, from, since }: Place): Filters {
  return { q, direction, from, since }
}

export function isFiltered({ q, direction, from, since }: Filters): boolean {
  return Boolean(q || direction || from || since)
}

/** Returns the path of a location. */
export function addressOf({ inboxId, threadId }: Pick<Place, 'inboxId' | 'threadId'>): string {
  return ['/mail', inboxId, threadId].filter(Boolean).join('/')
}

/** Goes to a location. Parts that it does not name are cleared, except the filters within the same inbox. */
export function useGo(): (to: Partial<Place>, how?: 'replace') => void {
  const navigate = useNavigate()
  const place = usePlace()
  return (to, how) => {
    const { inboxId, threadId, ...search } = to
    const kept = inboxId === place.inboxId ? filtersOf(place) : {}
    void navigate({
      to: addressOf({ inboxId, threadId }),
      search: { ...kept, ...search },
      replace: how === 'replace',
    })
  }
}

/** Sets filters and keeps the open inbox and thread. */
export function useFind() {
  const { inboxId, threadId, q, direction, from, since } = usePlace()
  const go = useGo()
  const latest = useRef({ go, place: { inboxId, threadId, q, direction, from, since } })
  latest.current = { go, place: { inboxId, threadId, q, direction, from, since } }
  return useRef((filters: Parameters<typeof go>[0]) => {
    latest.current.go({ ...latest.current.place, ...filters }, 'replace')
  }).current
}
