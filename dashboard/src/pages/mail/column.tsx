// One of the columns of the mail page: a head that stays, and what scrolls below it.

import { ArrowLeft } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import { classes } from '../../parts/classes.ts'
import { IconButton } from '../../parts/form/button.tsx'
import { SkeletonRows } from '../../parts/list/skeleton.tsx'
import { mail } from '../../texts/mail.ts'

interface ColumnProps {
  title: string
  /** The head shows something else in place of the title, which is only heard. */
  head?: ReactNode
  actions?: ReactNode
  /** On a phone, where one column is shown at a time: back to the one before. */
  onBack?: () => void
  /** Below the head, above what scrolls. */
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

/** Where a column comes once its code is here. */
export function WaitingColumn() {
  return (
    <div className="min-w-0 flex-1">
      <SkeletonRows count={6} />
    </div>
  )
}
