// A part of a page that scrolls separately, also by keyboard.
import type { ReactNode } from 'react'

interface ScrolledProps {
  /** Its name, for screen readers. */
  label: string
  className: string
  children: ReactNode
}

export function Scrolled({ label, className, children }: ScrolledProps) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling parts must be reachable by keyboard
      tabIndex={0}
      className={className}
    >
      {children}
    </section>
  )
}
