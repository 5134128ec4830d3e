// The frame of the pages before the sign-in: the logo, a title, and one task.
import { type ReactNode, useEffect, useRef } from 'react'
import { useTitle } from '../../parts/use-title.ts'
import { Logo } from '../../shell/logo.tsx'
import { shell } from '../../texts/shell.ts'

interface AccessFrameProps {
  title: string
  lead?: ReactNode
  children?: ReactNode
  /** Alternatives at the bottom. */
  footer?: ReactNode
}

export function AccessFrame({ title, lead, children, footer }: AccessFrameProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useTitle(title)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new title is a new step, which screen readers must announce
  useEffect(() => {
    if (!(document.activeElement instanceof HTMLInputElement)) heading.current?.focus({ preventScroll: true })
  }, [title])
  return (
    <main className="mx-auto flex min-h-dvh w-full max-w-[400px] flex-col px-5 pt-[12vh] pb-12 sm:pt-[17vh]">
      <div className="flex items-center gap-3">
        <Logo sizePx={36} />
        <div className="min-w-0">
          <p className="text-lg leading-5 font-semibold">{shell.name}</p>
          <p className="truncate text-sm text-faint">{location.hostname}</p>
        </div>
      </div>
      <h1 ref={heading} tabIndex={-1} className="mt-6 text-2xl font-semibold tracking-tight text-balance">
        {title}
      </h1>
      {lead && <div className="mt-1.5 text-balance text-muted">{lead}</div>}
      <div className="mt-7 grid gap-4">{children}</div>
      {footer && <div className="mt-7 grid gap-1.5 text-sm text-muted">{footer}</div>}
    </main>
  )
}
