// The two views of blocked addresses: suppressions and complaints.
import { Link } from '@tanstack/react-router'
import { suppressions } from '../../texts/suppressions.ts'

const sides = [
  { to: '/suppressions', label: suppressions.suppressed },
  { to: '/complaints', label: suppressions.complaints },
] as const

export function Sides() {
  return (
    <nav aria-label={suppressions.tabs} className="mb-4 border-b">
      <ul className="flex gap-5">
        {sides.map(({ to, label }) => (
          <li key={to} className="-mb-px flex">
            <Link
              to={to}
              className="flex h-9 items-center border-b-2 border-transparent text-sm font-medium text-muted -outline-offset-2 hover:text-ink data-[status=active]:border-accent data-[status=active]:text-ink"
            >
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}
