// The secret of a mailed or printed link, which is after the `#` to stay out of logs, and leaves the address at once.
import { useEffect, useState } from 'react'

let taken: { path: string; token: string } | null = null

/** Returns the token of the opened page, or null. It changes if a second link is opened in the same window. */
export function useLinkToken(): string | null {
  const [token, setToken] = useState(takeToken)
  useEffect(() => {
    const take = () => setToken(takeToken())
    addEventListener('hashchange', take)
    return () => removeEventListener('hashchange', take)
  }, [])
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
