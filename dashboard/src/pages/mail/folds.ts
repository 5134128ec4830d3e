// The open messages of a thread: the last one, the requested one, and those that the user opened.
import { useState } from 'react'
import type { Message } from './mail-queries.ts'

export interface Folds {
  isOpen: (id: string) => boolean
  toggle: (id: string) => void
  isAllOpen: boolean
  setAll: (all: 'open' | 'folded') => void
}

/** `hasMore`: the thread has more messages after these. */
export function useFolds(messages: readonly Message[], hasMore: boolean, asked: string | undefined): Folds {
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [isAllOpen, setIsAllOpen] = useState(false)
  const last = hasMore ? undefined : messages.at(-1)?.id
  // A message that was the last one stays open when a new message arrives below it.
  const [wereLast, setWereLast] = useState<ReadonlySet<string>>(new Set())
  if (last && !wereLast.has(last)) setWereLast(new Set([...wereLast, last]))
  const isOpen = (id: string) => chosen.get(id) ?? (isAllOpen || wereLast.has(id) || id === asked)
  return {
    isOpen,
    isAllOpen,
    toggle: (id) => setChosen(new Map(chosen).set(id, !isOpen(id))),
    setAll: (all) => {
      setIsAllOpen(all === 'open')
      setWereLast(new Set(last ? [last] : []))
      setChosen(new Map())
    },
  }
}
