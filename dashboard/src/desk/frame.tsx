// What stands around every page of the desk: the pages to choose from, who waits, the theme, the keys and the way out.
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useRef, useState } from 'react'
import { useShortcut } from '../parts/shortcut.ts'
import { Logo } from '../shell/logo.tsx'
import { desk } from '../texts/desk.ts'
import { DeskMenu } from './menu.tsx'
import { type DeskPage, deskPages } from './pages.ts'
import { useCounts } from './queries.ts'

const ShortcutsSheet = lazy(async () => ({
  default: (await import('../shell/shortcuts-sheet.tsx')).ShortcutsSheet,
}))

export function Frame() {
  const main = useRef<HTMLElement>(null)
  const [isHelping, setHelping] = useState(false)
  useShortcut({ keys: '?', label: desk.shortcuts, group: desk.general }, () => setHelping(true))
  return (
    <div className="md:grid md:grid-cols-[228px_minmax(0,1fr)]">
      <SkipLink onFollow={() => main.current?.focus()} />
      {deskPages.map((page) => (
        <PageKey key={page.id} page={page} />
      ))}
      <SideBar onHelp={() => setHelping(true)} />
      <main ref={main} id="main" tabIndex={-1} className="min-w-0 pb-14 md:pb-0">
        <Outlet />
      </main>
      <BottomBar />
      <Suspense fallback={null}>{isHelping && <ShortcutsSheet onClose={() => setHelping(false)} />}</Suspense>
    </div>
  )
}

/** A button, for what stands behind the # is a page here. */
function SkipLink({ onFollow }: { onFollow: () => void }) {
  return (
    <button
      type="button"
      onClick={onFollow}
      className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-60 focus:rounded-md focus:bg-accent focus:px-3 focus:py-2 focus:text-on-accent"
    >
      {desk.skip}
    </button>
  )
}

function PageKey({ page: { id, to, key } }: { page: DeskPage }) {
  const navigate = useNavigate()
  useShortcut({ keys: `g ${key}`, label: desk.pages[id], group: desk.goTo }, () => void navigate({ to }))
  return null
}

/** A bar above on a phone. */
function SideBar({ onHelp }: { onHelp: () => void }) {
  return (
    <header className="sticky top-0 z-20 flex items-center gap-3 border-b bg-page px-3 py-2 md:h-dvh md:flex-col md:items-stretch md:overflow-y-auto md:border-r md:border-b-0 md:py-3">
      <Link
        to="/"
        className="flex h-9 flex-1 items-center gap-2.5 rounded-md px-1.5 font-semibold md:flex-none"
      >
        <Logo />
        {desk.name}
      </Link>
      <nav aria-label={desk.navigation} className="hidden md:block">
        <ul className="grid gap-px">
          {deskPages.map((page) => (
            <li key={page.id}>
              <SideLink page={page} />
            </li>
          ))}
        </ul>
      </nav>
      <div className="md:mt-auto">
        <DeskMenu onHelp={onHelp} />
      </div>
    </header>
  )
}

function SideLink({ page: { id, to, icon: Icon } }: { page: DeskPage }) {
  return (
    <Link
      to={to}
      className="group flex h-8 items-center gap-2.5 rounded-md px-2.5 text-muted hover:bg-hover hover:text-ink data-[status=active]:bg-idle-soft data-[status=active]:font-medium data-[status=active]:text-ink"
    >
      <Icon
        size={16}
        strokeWidth={1.75}
        aria-hidden
        className="text-faint group-data-[status=active]:text-accent"
      />
      <span className="flex-1">{desk.pages[id]}</span>
      {id === 'approvals' && <Waiting />}
    </Link>
  )
}

function Waiting() {
  const { data: counts } = useCounts()
  if (!counts?.pending) return null
  return (
    <span className="numbers grid h-5 min-w-5 place-items-center rounded-full bg-accent px-1.5 text-xs font-semibold text-on-accent">
      {counts.pending}
    </span>
  )
}

function BottomBar() {
  return (
    <nav
      aria-label={desk.navigation}
      className="fixed inset-x-0 bottom-0 z-30 flex border-t bg-surface pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      {deskPages.map(({ id, to, icon: Icon }) => (
        <Link
          key={id}
          to={to}
          className="relative grid h-14 flex-1 place-items-center text-muted -outline-offset-2 data-[status=active]:text-accent"
        >
          <Icon size={21} strokeWidth={1.75} aria-hidden />
          <span className="sr-only">{desk.pages[id]}</span>
          {id === 'approvals' && (
            <span className="absolute top-1.5 left-[calc(50%+6px)]">
              <Waiting />
            </span>
          )}
        </Link>
      ))}
    </nav>
  )
}
