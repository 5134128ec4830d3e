// The session of the desk: opened by the link that the browser came with, or found.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Session } from '../../../src/operator/desk/schemas/session.ts'
import { ApiError } from '../api/client.ts'
import { ask, onClosed, setChangeToken } from './client.ts'

const linkToken = /^#([A-Za-z0-9_-]{43})$/

/** Taken out of the address at once: a link must not be left in the history. */
const given = linkToken.exec(location.hash)?.[1] ?? null
if (given !== null) history.replaceState(null, '', '#/')

let opening: Promise<Session> | null =
  given === null ? null : ask<Session>('/session', { method: 'POST', body: { token: given } })

// A link that is opened where the desk is open already changes nothing but what stands behind the #.
addEventListener('hashchange', () => linkToken.test(location.hash) && location.reload())

const key = ['session']

/** Null: the desk is closed. */
async function findSession(): Promise<Session | null> {
  const opened = opening
  opening = null
  const refusal =
    opened &&
    (await opened.then(
      () => null,
      (error: unknown) => error,
    ))
  const session = opened && !refusal ? await opened : await findOpen()
  if (!session && refusal) throw refusal
  setChangeToken(session?.csrfToken ?? null)
  return session
}

/** A link that opens nothing any more closes nothing either. */
async function findOpen(): Promise<Session | null> {
  try {
    return await ask<Session>('/session')
  } catch (error) {
    if (error instanceof ApiError && error.code === 'session_required') return null
    throw error
  }
}

export function useSession() {
  const queries = useQueryClient()
  useEffect(() => onClosed(() => queries.setQueryData(key, null)), [queries])
  return useQuery({ queryKey: key, queryFn: findSession, staleTime: Number.POSITIVE_INFINITY, retry: false })
}

export function useCloseDesk(): () => Promise<void> {
  const queries = useQueryClient()
  return async () => {
    await ask('/session', { method: 'DELETE' })
    setChangeToken(null)
    queries.setQueryData(key, null)
    // What was read stays in no browser that nobody sits at.
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== key[0] })
  }
}
