// Runs after every kind of sign-in: takes the session and opens the requested page.
import { useRouter } from '@tanstack/react-router'
import { type Session, useTakeSession } from '../../shell/session.ts'

/** Security: only a path of this site, whatever a link has put into `?to=`. */
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
