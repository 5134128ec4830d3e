// An empty state that teaches the first step.
import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'

interface EmptyProps {
  icon: LucideIcon
  title: string
  children: ReactNode
  /** `h1` if the page has no other content. */
  heading?: 'h1' | 'h2'
  /** The button of the first step. */
  action?: ReactNode
  /** The same step as code, in a CodeBlock. */
  code?: ReactNode
}

export function Empty({ icon: Icon, title, children, heading: Heading = 'h2', action, code }: EmptyProps) {
  return (
    <div className="mx-auto grid max-w-xl justify-items-center gap-3 px-4 py-14 text-center">
      <span className="grid size-11 place-items-center rounded-lg border bg-surface text-accent">
        <Icon size={20} strokeWidth={1.75} aria-hidden />
      </span>
      <Heading className="text-lg font-semibold text-balance">{title}</Heading>
      <div className="max-w-lg text-balance text-muted">{children}</div>
      {action && <div className="mt-2 flex flex-wrap justify-center gap-2">{action}</div>}
      {code && <div className="mt-4 w-full min-w-0 text-left">{code}</div>}
    </div>
  )
}
