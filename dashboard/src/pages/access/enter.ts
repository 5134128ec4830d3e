// What follows every way of signing in: the session is taken, and the page opens that was asked for.
import { useRouter } from '@tanstack/react-router'
import { type Session, useTakeSession } from '../../shell/session.ts'

/** Security: an address of this site and no other, whatever a link has put behind `?to=`. */
function ownPath(wanted: string | undefined): string {
  if (!wanted) return '/'
  const { origin, pathname, search, hash } = new URL(wanted, location.origin)
  return origin === location.origin && !pathname.startsWith('//') ? pathname + search + hash : '/'
}

export function useEnter(): (session: Session) => void {
  const router = useRouter()
  const takeSession = useTakeSession()
  return (session) => {
    takeSession(session)
    router.history.push(ownPath((router.state.location.search as { to?: string }).to))
  }
}
