// The frame of every page of the desk: the navigation, the number of organizations that wait for approval, and the menu.
import { Link, Outlet } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { Logo } from '../shell/logo.tsx'
import { BottomBar, FrameKeys, SideLinks, SkipLink } from '../shell/navigation.tsx'
import { openOverlay, useOverlay } from '../shell/overlays.ts'
import { desk } from '../texts/desk.ts'
import { DeskMenu } from './menu.tsx'
import { deskPages } from './pages.tsx'

const ShortcutsSheet = lazy(async () => ({
  default: (await import('../shell/shortcuts-sheet.tsx')).ShortcutsSheet,
}))

export function Frame() {
  const isHelping = useOverlay() === 'shortcuts'
  return (
    <div className="md:grid md:grid-cols-[228px_minmax(0,1fr)]">
      <SkipLink />
      <FrameKeys pages={deskPages} />
      <SideBar />
      <main id="main" tabIndex={-1} className="min-w-0 pb-14 md:pb-0">
        <Outlet />
      </main>
      <BottomLinks />
      <Suspense fallback={null}>{isHelping && <ShortcutsSheet onClose={() => openOverlay(null)} />}</Suspense>
    </div>
  )
}

/** On a phone this is a bar at the top. */
function SideBar() {
  return (
    <header className="sticky top-0 z-20 flex items-center gap-3 border-b bg-page px-3 py-2 md:h-dvh md:flex-col md:items-stretch md:overflow-y-auto md:border-r md:border-b-0 md:py-3">
      <Link
        to="/"
        className="flex h-9 flex-1 items-center gap-2.5 rounded-md px-1.5 font-semibold md:flex-none"
      >
        <Logo />
        {desk.name}
      </Link>
      <div className="hidden md:block">
        <SideLinks groups={[deskPages]} />
      </div>
      <div className="w-9 md:mt-auto md:w-auto">
        <DeskMenu />
      </div>
    </header>
  )
}

function BottomLinks() {
  return (
    <BottomBar>
      {deskPages.map(({ label, to, icon: Icon, mark }) => (
        <Link
          key={to}
          to={to}
          className="relative grid h-14 flex-1 place-items-center text-muted -outline-offset-2 data-[status=active]:text-accent"
        >
          <Icon size={21} strokeWidth={1.75} aria-hidden />
          <span className="sr-only">{label}</span>
          {mark && <span className="absolute top-1.5 left-[calc(50%+6px)]">{mark}</span>}
        </Link>
      ))}
    </BottomBar>
  )
}
