// The frame of a page: its title (also the browser's), breadcrumbs, actions, and the focus when it opens.
import { Link } from '@tanstack/react-router'
import { ChevronRight } from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
import { parts } from '../texts/parts.ts'
import { useTitle } from './use-title.ts'

export interface Crumb {
  label: string
  to: string
}

interface PageProps {
  title: string
  /** Content next to the title, such as a state. */
  badge?: ReactNode
  /** A sentence below the title. */
  lead?: ReactNode
  crumbs?: readonly Crumb[]
  actions?: ReactNode
  /** The content is as wide as readable text. It begins where that of the other pages does. */
  isText?: boolean
  children: ReactNode
}

export function Page({ title, badge, lead, crumbs, actions, isText, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useTitle(title)
  useEffect(() => focusOpened(heading.current), [])
  return (
    <div className="mx-auto w-full max-w-[1120px] px-4 pt-6 pb-16 sm:px-8 sm:pt-8">
      {crumbs && <Crumbs crumbs={crumbs} />}
      <header className="mb-6 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 flex-1 basis-72">
          <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
            <h1
              ref={heading}
              tabIndex={-1}
              className="min-w-0 text-xl font-semibold tracking-tight break-words"
            >
              {title}
            </h1>
            {badge}
          </div>
          {lead && <p className="mt-1 max-w-3xl text-balance text-muted">{lead}</p>}
        </div>
        {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      {isText ? <div className="max-w-3xl">{children}</div> : children}
    </div>
  )
}

/** Focuses the title of a new page, so that screen readers announce it. Does nothing for the first page of a visit. */
function focusOpened(heading: HTMLHeadingElement | null): void {
  const { activeElement } = document
  const isFirst = document.documentElement.dataset['opened'] === undefined
  document.documentElement.dataset['opened'] = 'yes'
  if (isFirst || activeElement?.closest('[data-keeps-focus]')) return
  heading?.focus({ preventScroll: true })
}

function Crumbs({ crumbs }: { crumbs: readonly Crumb[] }) {
  return (
    <nav aria-label={parts.breadcrumbs} className="mb-1.5">
      <ol className="flex flex-wrap items-center text-sm text-faint">
        {crumbs.map(({ label, to }) => (
          <li key={to} className="flex items-center">
            <Link to={to} className="rounded-sm hover:text-ink hover:underline">
              {label}
            </Link>
            <ChevronRight size={14} className="mx-1" aria-hidden />
          </li>
        ))}
      </ol>
    </nav>
  )
}
