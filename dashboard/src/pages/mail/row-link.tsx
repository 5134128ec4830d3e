// A row of a long list that leads somewhere: a plain link, for there may be thousands of them in a second of scrolling.
import { useRouter } from '@tanstack/react-router'
import type { MouseEvent, ReactNode } from 'react'
import { classes } from '../../parts/classes.ts'
import { addressOf, filtersOf, type Place, useGo, usePlace } from './place.ts'

interface RowLinkProps {
  to: { inboxId: string; threadId: string; message?: string }
  isOpen: boolean
  'data-thread'?: string
  className: string
  children: ReactNode
}

export function RowLink({ to, isOpen, className, children, ...rest }: RowLinkProps) {
  const go = useGo()
  const place = usePlace()
  const router = useRouter()
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0) return
    event.preventDefault()
    go(to)
  }
  const { inboxId, threadId, ...search } = to
  return (
    <a
      href={addressOf(to) + router.options.stringifySearch({ ...filtersIn(place, inboxId), ...search })}
      data-row
      aria-current={isOpen ? 'page' : undefined}
      onClick={follow}
      className={classes(className, '-outline-offset-2 hover:bg-hover aria-[current]:bg-idle-soft')}
      {...rest}
    >
      {children}
    </a>
  )
}

function filtersIn(place: Place, inboxId: string) {
  return place.inboxId === inboxId ? filtersOf(place) : {}
}
