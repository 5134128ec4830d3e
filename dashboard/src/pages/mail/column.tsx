// One column of the mail page: a fixed head with scrolling content below it.

import { ArrowLeft } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import { classes } from '../../parts/classes.ts'
import { IconButton } from '../../parts/form/button.tsx'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { mail } from '../../texts/mail.ts'

interface ColumnProps {
  title: string
  /** Replaces the visible title. Screen readers still get the title. */
  head?: ReactNode
  actions?: ReactNode
  /** Returns to the previous column on a phone, which shows one column at a time. */
  onBack?: () => void
  /** Content between the head and the scrolling part. */
  below?: ReactNode
  className?: string
  children: ReactNode
}

export function Column({ title, head, actions, onBack, below, className, children }: ColumnProps) {
  const id = useId()
  return (
    <section aria-labelledby={id} className={classes('flex min-h-0 min-w-0 flex-col', className)}>
      <header className="flex h-13 shrink-0 items-center gap-1 border-b pr-2 pl-4">
        {onBack && (
          <span className="-ml-2 lg:hidden">
            <IconButton icon={ArrowLeft} label={mail.back} onClick={onBack} />
          </span>
        )}
        <h2 id={id} className={head ? 'sr-only' : 'min-w-0 flex-1 truncate font-semibold'}>
          {title}
        </h2>
        {head && <div className="min-w-0 flex-1">{head}</div>}
        {actions}
      </header>
      {below}
      <div className="min-h-0 flex-1">{children}</div>
    </section>
  )
}

/** The placeholder of a column while its code loads. */
export function WaitingColumn() {
  return (
    <div className="min-w-0 flex-1">
      <SkeletonRows count={6} />
    </div>
  )
}
