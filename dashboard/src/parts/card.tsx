// A bordered part of a page: a title, actions, and content.
import { type ReactNode, useId } from 'react'
import { classes } from './classes.ts'

interface CardProps {
  title?: string
  lead?: ReactNode
  actions?: ReactNode
  /** The content reaches the edges, as tables do. */
  flush?: boolean
  children: ReactNode
  className?: string
}

export function Card({ title, lead, actions, flush, children, className }: CardProps) {
  const id = useId()
  return (
    <section
      aria-labelledby={title ? id : undefined}
      className={classes('min-w-0 overflow-clip rounded-lg border bg-surface', className)}
    >
      {(title || actions) && (
        <header
          className={classes(
            'flex flex-wrap items-start justify-between gap-3 px-4 sm:px-5',
            flush ? 'border-b py-3' : 'pt-4',
          )}
        >
          <div className="min-w-0">
            {title && (
              <h2 id={id} className="font-semibold">
                {title}
              </h2>
            )}
            {lead && <p className="max-w-3xl text-sm text-balance text-muted">{lead}</p>}
          </div>
          {actions && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
        </header>
      )}
      <div className={flush ? '' : 'px-4 py-4 sm:px-5'}>{children}</div>
    </section>
  )
}
