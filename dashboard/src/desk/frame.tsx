// The frame of every page of the desk: the navigation, the number of organizations that wait for approval, and the menu.
import { Link, Outlet } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { Logo } from '../shell/logo.tsx'
import { DailyBar, FrameKeys, SideLinks, SkipLink } from '../shell/navigation.tsx'
import { openOverlay, useOverlay } from '../shell/overlays.ts'
import { desk } from '../texts/desk.ts'
import { DeskMenu } from './menu.tsx'
import { deskPages } from './pages.tsx'

const ShortcutsSheet = lazy(async () => ({
  default: (await import('../shell/shortcuts-sheet.tsx')).ShortcutsSheet,
}))

const PagesSheet = lazy(async () => ({ default: (await import('../shell/pages-sheet.tsx')).PagesSheet }))
/** The pages in the bar of a phone, of which four have no room for their names. */
const dailyCount = 3

export function Frame() {
  const overlay = useOverlay()
  const close = () => openOverlay(null)
  return (
    <div className="md:grid md:grid-cols-[228px_minmax(0,1fr)]">
      <SkipLink />
      <FrameKeys pages={deskPages} />
      <SideBar />
      <main id="main" tabIndex={-1} className="min-w-0 pb-14 md:pb-0">
        <Outlet />
      </main>
      <DailyBar pages={deskPages.slice(0, dailyCount)} />
      <Suspense fallback={null}>
        {overlay === 'shortcuts' && <ShortcutsSheet onClose={close} />}
        {overlay === 'pages' && <PagesSheet groups={[deskPages]} onClose={close} />}
      </Suspense>
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
