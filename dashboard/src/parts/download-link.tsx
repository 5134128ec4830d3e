// A link that looks like a button, to a file that the service makes.
import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'

interface DownloadLinkProps {
  href: string
  icon: LucideIcon
  children: ReactNode
  size?: 'small'
}

export function DownloadLink({ href, icon: Icon, children, size }: DownloadLinkProps) {
  const shape = size === 'small' ? 'h-7 gap-1.5 px-2.5 text-sm' : 'h-9 gap-2 px-3.5'
  return (
    <a
      href={href}
      download
      className={`inline-flex shrink-0 items-center justify-center rounded-md border border-line-strong bg-surface font-medium whitespace-nowrap text-ink hover:bg-hover ${shape}`}
    >
      <Icon size={15} aria-hidden />
      {children}
    </a>
  )
}
