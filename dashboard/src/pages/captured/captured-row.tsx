// One captured mail in the list: its recipient, its subject, and its time.
import { Link } from '@tanstack/react-router'
import { Time } from '../../parts/time.tsx'
import { captured } from '../../texts/captured.ts'
import type { CapturedRow } from './queries.ts'

export const capturedRowPx = 78

export function CapturedRowLink({ row, isOpen }: { row: CapturedRow; isOpen: boolean }) {
  const { id, from, recipients, subject, capturedAt } = row
  return (
    <Link
      to="/captured/$capturedId"
      params={{ capturedId: id }}
      data-row
      data-keeps-focus
      aria-current={isOpen ? 'page' : undefined}
      className="grid h-full content-center gap-px border-b px-4 -outline-offset-2 hover:bg-hover aria-[current]:bg-idle-soft"
    >
      <span className="flex min-w-0 items-baseline justify-between gap-3">
        <span className="min-w-0 truncate font-medium">{subject || captured.noSubject}</span>
        <Time value={capturedAt} className="shrink-0 text-xs whitespace-nowrap text-faint" />
      </span>
      <span className="truncate text-sm text-muted">
        {captured.to} {recipients.join(', ')}
      </span>
      <span className="truncate text-sm text-faint">
        {captured.from} {from ? from.name || from.email : captured.unknownFrom}
      </span>
    </Link>
  )
}
