// The secret of a mailed or printed link, which stands behind the `#` so that it is in no log; it leaves the address at once.
import { useState } from 'react'

let taken: { path: string; token: string } | null = null

/** The token of the page that was opened, or null; the same one however often it is asked for. */
export function useLinkToken(): string | null {
  const [token] = useState(takeToken)
  return token
}

function takeToken(): string | null {
  const { pathname, search, hash } = location
  if (hash.length > 1) {
    taken = { path: pathname, token: hash.slice(1) }
    history.replaceState(history.state, '', pathname + search)
  }
  return taken?.path === pathname ? taken.token : null
}
