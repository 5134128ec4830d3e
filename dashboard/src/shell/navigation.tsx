// The navigation: the side bar, the bottom bar of a phone, and the shortcuts to the pages.
import { Link, useNavigate } from '@tanstack/react-router'
import { Ellipsis } from 'lucide-react'
import { useShortcut } from '../parts/shortcut.ts'
import { shell } from '../texts/shell.ts'
import { openOverlay } from './overlays.ts'
import type { PageGroups, PageLink } from './pages.ts'

interface SideLinksProps {
  groups: PageGroups
  onFollow?: () => void
}

export function SideLinks({ groups, onFollow }: SideLinksProps) {
  return (
    <nav aria-label={shell.navigation} className="grid gap-4">
      {groups.map((group) => (
        <ul key={group[0]!.to} className="grid gap-px">
          {group.map((page) => (
            <li key={page.to}>
              <SideLink page={page} {...(onFollow ? { onFollow } : {})} />
            </li>
          ))}
        </ul>
      ))}
    </nav>
  )
}

interface SideLinkProps {
  page: PageLink
  onFollow?: () => void
}

function SideLink({ page: { label, to, icon: Icon, mark }, onFollow }: SideLinkProps) {
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
      <span className="flex-1">{label}</span>
      {mark}
    </Link>
  )
}

const barItem =
  'relative grid h-14 flex-1 content-center justify-items-center gap-0.5 text-xs text-muted data-[status=active]:text-accent -outline-offset-2'

/** The daily pages at the bottom of a phone. The last item opens the list of all pages. */
export function DailyBar({ pages }: { pages: readonly PageLink[] }) {
  return (
    <nav
      aria-label={shell.navigation}
      className="fixed inset-x-0 bottom-0 z-30 flex border-t bg-surface pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      {pages.map(({ label, to, icon: Icon, mark }) => (
        <Link key={to} to={to} activeOptions={{ exact: to === '/' }} className={barItem}>
          <Icon size={19} strokeWidth={1.75} aria-hidden />
          {label}
          {mark && <span className="absolute top-1 left-[calc(50%+8px)]">{mark}</span>}
        </Link>
      ))}
      <button type="button" onClick={() => openOverlay('pages')} className={barItem}>
        <Ellipsis size={19} strokeWidth={1.75} aria-hidden />
        {shell.more}
      </button>
    </nav>
  )
}

/** Focuses the page by script, because the part after # may be a page's address. */
export function SkipLink() {
  return (
    // biome-ignore lint/a11y/useValidAnchor: it leads to a part of this page, like every skip link
    <a
      href="#main"
      onClick={(event) => {
        event.preventDefault()
        document.getElementById('main')?.focus()
      }}
      className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-60 focus:rounded-md focus:bg-accent focus:px-3 focus:py-2 focus:text-on-accent"
    >
      {shell.skip}
    </a>
  )
}

/** `?` lists the shortcuts. `g` and a letter open a page. */
export function FrameKeys({ pages }: { pages: readonly PageLink[] }) {
  useShortcut({ keys: '?', label: shell.shortcuts, group: shell.general }, () => openOverlay('shortcuts'))
  return pages.map((page) => <PageKey key={page.to} page={page} />)
}

function PageKey({ page: { label, to, key } }: { page: PageLink }) {
  const navigate = useNavigate()
  useShortcut({ keys: `g ${key}`, label, group: shell.goTo }, () => void navigate({ to }))
  return null
}
