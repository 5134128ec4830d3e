// The session of the desk: opened by the link in the address, or found.
import { useQuery } from '@tanstack/react-query'
import { ApiError, onSignedOut, read, setChangeToken } from '../api/client.ts'
import { queries } from '../queries.ts'
import { type Answer, api } from './client.ts'

type Session = Answer<'/session'>

const linkToken = /^#([A-Za-z0-9_-]{43})$/

/** Removed from the address at once, because a link must not stay in the history. */
const given = linkToken.exec(location.hash)?.[1] ?? null
if (given !== null) history.replaceState(null, '', '#/')

let opening: Promise<Session> | null =
  given === null ? null : read(api.POST('/session', { body: { token: given } }))

// A link that is opened in a tab with the desk changes only the part after the #, so the page must reload.
addEventListener('hashchange', () => linkToken.test(location.hash) && location.reload())

const key = ['session']

/** Null if the desk is closed. */
async function findSession(): Promise<Session | null> {
  const [opened] = opening ? await Promise.allSettled([opening]) : []
  opening = null
  const session = opened?.status === 'fulfilled' ? opened.value : await findOpen()
  if (!session && opened?.status === 'rejected') throw opened.reason
  setChangeToken(session?.csrfToken ?? null)
  return session
}

/** An expired link does not close a desk that is already open. */
async function findOpen(): Promise<Session | null> {
  try {
    return await read(api.GET('/session'))
  } catch (error) {
    if (error instanceof ApiError && error.code === 'session_required') return null
    throw error
  }
}

onSignedOut(async () => void queries.setQueryData(key, null))

export function useSession() {
  return useQuery({ queryKey: key, queryFn: findSession, staleTime: Number.POSITIVE_INFINITY, retry: false })
}

export async function closeDesk(): Promise<void> {
  await read(api.DELETE('/session'))
  setChangeToken(null)
  queries.setQueryData(key, null)
  // The browser keeps no data after the desk is closed.
  queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== key[0] })
}
