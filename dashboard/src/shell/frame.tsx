// The frame of every page behind the sign-in: side bar, bottom bar on a phone, overlays, and global shortcuts.

import { useQueryClient } from '@tanstack/react-query'
import { Outlet } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { lazy, Suspense, useEffect } from 'react'
import { Badge } from '../parts/badge.tsx'
import { Kbd } from '../parts/kbd.tsx'
import { useShortcut } from '../parts/shortcut.ts'
import { shell } from '../texts/shell.ts'
import { states } from '../texts/states.ts'
import { AccountMenu } from './account-menu.tsx'
import { DailyBar, FrameKeys, SideLinks, SkipLink } from './navigation.tsx'
import { OrganizationMenu } from './organization-menu.tsx'
import { openOverlay, useOverlay } from './overlays.ts'
import { type PageGroups, pageGroups } from './pages.ts'
import { useSession } from './session.ts'

const Palette = lazy(async () => ({ default: (await import('./palette.tsx')).Palette }))
const ShortcutsSheet = lazy(async () => ({ default: (await import('./shortcuts-sheet.tsx')).ShortcutsSheet }))
const PagesSheet = lazy(async () => ({ default: (await import('./pages-sheet.tsx')).PagesSheet }))

export function Frame() {
  const session = useSession()
  const groups = pageGroups(session)
  return (
    <div className="md:grid md:grid-cols-[228px_minmax(0,1fr)]">
      <SkipLink />
      <FindKeys />
      <FrameKeys pages={groups.flat()} />
      <Live />
      <SideBar />
      <TopBar />
      <main
        id="main"
        tabIndex={-1}
        // `relative` keeps hidden text for screen readers inside. Otherwise the window would grow and scroll too.
        className="relative min-w-0 pb-[calc(56px+env(safe-area-inset-bottom))] md:h-dvh md:overflow-y-auto md:pb-0 md:not-has-[[data-fills-window]]:[scrollbar-gutter:stable]"
      >
        <Outlet key={session.organization?.id} />
      </main>
      <DailyBar pages={groups[0] ?? []} />
      <Overlays groups={groups} />
    </div>
  )
}

/** Follows the live events once for all pages. */
function Live() {
  const queries = useQueryClient()
  useEffect(() => {
    let stop: (() => void) | null = null
    let isOver = false
    void import('../api/live.ts').then(({ followEvents }) => {
      if (!isOver) stop = followEvents(queries)
    })
    return () => {
      isOver = true
      stop?.()
    }
  }, [queries])
  return null
}

function SideBar() {
  const session = useSession()
  const { development, organization } = session
  return (
    <aside className="sticky top-0 hidden h-dvh flex-col gap-3 overflow-y-auto border-r bg-page px-3 py-3 md:flex">
      <OrganizationMenu />
      <FindButton />
      <SideLinks groups={pageGroups(session)} />
      <div className="mt-auto grid gap-2 pt-4">
        <div className="flex flex-wrap gap-1.5 px-2.5 empty:hidden">
          {development && (
            <Badge tone="accent" title={shell.developmentWhat}>
              {shell.development}
            </Badge>
          )}
          {organization?.role === 'viewer' && <Badge title={shell.viewer}>{states.viewer}</Badge>}
        </div>
        <AccountMenu />
      </div>
    </aside>
  )
}

function FindButton() {
  return (
    <button
      type="button"
      onClick={() => openOverlay('palette')}
      className="flex h-8 items-center gap-2.5 rounded-md border border-line-strong bg-surface px-2.5 text-sm text-faint hover:text-ink"
    >
      <Search size={14} aria-hidden />
      <span className="flex-1 text-left">{shell.find}</span>
      <Kbd keys="Mod K" />
    </button>
  )
}

/** The top bar on a phone: the current organization and the search. */
function TopBar() {
  return (
    <header className="sticky top-0 z-20 flex h-13 items-center gap-2 border-b bg-page px-2.5 md:hidden">
      <div className="min-w-0 flex-1">
        <OrganizationMenu />
      </div>
      <button
        type="button"
        aria-label={shell.find}
        onClick={() => openOverlay('palette')}
        className="grid size-10 place-items-center rounded-md text-muted"
      >
        <Search size={19} aria-hidden />
      </button>
      <div className="w-10">
        <AccountMenu />
      </div>
    </header>
  )
}

/** The shortcuts that open the palette. */
function FindKeys() {
  useShortcut({ keys: 'Mod k', label: shell.findHint, group: shell.general }, () => openOverlay('palette'))
  useShortcut({ keys: '/', label: shell.find, group: shell.general }, () => openOverlay('palette'))
  return null
}

function Overlays({ groups }: { groups: PageGroups }) {
  const overlay = useOverlay()
  const close = () => openOverlay(null)
  return (
    <Suspense fallback={null}>
      {overlay === 'palette' && <Palette onClose={close} />}
      {overlay === 'shortcuts' && <ShortcutsSheet onClose={close} />}
      {overlay === 'pages' && <PagesSheet groups={groups} onClose={close} />}
    </Suspense>
  )
}
