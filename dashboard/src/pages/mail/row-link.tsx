// A row of a long list as a plain, stateless link, because scrolling may render hundreds of them in a second.
import type { MouseEvent, ReactNode } from 'react'
import { classes } from '../../parts/classes.ts'
import { addressOf, filtersOf, type Place, useGo, usePlace } from './place.ts'

interface RowLinkProps {
  href: string
  isOpen: boolean
  'data-thread': string
  className: string
  children: ReactNode
}

export function RowLink({ isOpen, className, children, ...rest }: RowLinkProps) {
  return (
    <a
      data-row
      aria-current={isOpen ? 'page' : undefined}
      className={classes(className, '-outline-offset-2 hover:bg-hover aria-[current]:bg-idle-soft')}
      {...rest}
    >
      {children}
    </a>
  )
}

type Target = Pick<Place, 'inboxId' | 'threadId'> & { message?: string }

/** The address of a row, with the current search. */
export function hrefOf({ inboxId, threadId, message }: Target, place: Place): string {
  const search = Object.entries({ ...filtersOf(place), message }).filter(([, value]) => value)
  const text = new URLSearchParams(search as [string, string][]).toString()
  return addressOf({ inboxId, threadId }) + (text && `?${text}`)
}

/** Returns one click handler that follows all links of a list within the page. */
export function useFollow(): (event: MouseEvent) => void {
  const go = useGo()
  const { inboxId } = usePlace()
  return (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return
    const link = (event.target as Element).closest<HTMLAnchorElement>('a[data-row]')
    if (!link) return
    event.preventDefault()
    const message = new URL(link.href).searchParams.get('message') ?? undefined
    go({ inboxId, threadId: link.dataset['thread'], message })
  }
}
