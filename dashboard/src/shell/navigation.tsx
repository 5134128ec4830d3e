// The pages to choose from: the side bar, and the bar at the bottom of a phone.
import { Link } from '@tanstack/react-router'
import { Ellipsis } from 'lucide-react'
import { shell } from '../texts/shell.ts'
import { type PageLink, pageGroups } from './pages.ts'
import { useSession } from './session.ts'

export function SideLinks({ onFollow }: { onFollow?: () => void }) {
  const session = useSession()
  return (
    <nav aria-label={shell.navigation} className="grid gap-4">
      {pageGroups(session).map((group) => (
        <ul key={group[0]!.id} className="grid gap-px">
          {group.map((page) => (
            <li key={page.id}>
              <SideLink page={page} {...(onFollow ? { onFollow } : {})} />
            </li>
          ))}
        </ul>
      ))}
    </nav>
  )
}

function SideLink({ page: { id, to, icon: Icon }, onFollow }: { page: PageLink; onFollow?: () => void }) {
  return (
    <Link
      to={to}
      activeOptions={{ exact: to === '/' }}
      {...(onFollow ? { onClick: onFollow } : {})}
      className="group flex h-8 items-center gap-2.5 rounded-md px-2.5 text-muted hover:bg-hover hover:text-ink data-[status=active]:bg-idle-soft data-[status=active]:font-medium data-[status=active]:text-ink"
    >
      <Icon
        size={16}
        strokeWidth={1.75}
        aria-hidden
        className="text-faint group-data-[status=active]:text-accent"
      />
      {shell.pages[id]}
    </Link>
  )
}

/** What a thumb reaches: the daily pages, and all others behind the last one. */
export function BottomBar({ onMore }: { onMore: () => void }) {
  const [daily = []] = pageGroups(useSession())
  const style =
    'grid h-14 flex-1 content-center justify-items-center gap-0.5 text-xs text-muted data-[status=active]:text-accent -outline-offset-2'
  return (
    <nav
      aria-label={shell.navigation}
      className="fixed inset-x-0 bottom-0 z-30 flex border-t bg-surface pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      {daily.map(({ id, to, icon: Icon }) => (
        <Link key={id} to={to} activeOptions={{ exact: to === '/' }} className={style}>
          <Icon size={19} strokeWidth={1.75} aria-hidden />
          {shell.pages[id]}
        </Link>
      ))}
      <button type="button" onClick={onMore} className={style}>
        <Ellipsis size={19} strokeWidth={1.75} aria-hidden />
        {shell.more}
      </button>
    </nav>
  )
}
