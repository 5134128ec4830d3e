// Removes a suppression after ten seconds, unless the user undoes it.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { toast, toastUndoable } from '../../parts/toasts.ts'
import { suppressions } from '../../texts/suppressions.ts'

export interface Removal {
  /** Addresses that are already hidden. */
  gone: ReadonlySet<string>
  remove: (email: string) => void
}

export function useRemoval(): Removal {
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set())
  const queries = useQueryClient()
  const show = (email: string) => setGone((before) => new Set([...before].filter((one) => one !== email)))
  const commit = async (email: string) => {
    try {
      await read(api.DELETE('/v1/suppressions', { body: { email }, keepalive: true }))
      await queries.invalidateQueries({ queryKey: ['suppressions'] })
      await queries.invalidateQueries({ queryKey: ['suppression', email] })
    } catch {
      toast(suppressions.removeFailed(email), 'bad')
    }
    show(email)
  }
  const remove = (email: string) => {
    setGone((before) => new Set([...before, email]))
    toastUndoable(suppressions.removed(email), {
      commit: () => void commit(email),
      undone: () => show(email),
    })
  }
  return { gone, remove }
}
