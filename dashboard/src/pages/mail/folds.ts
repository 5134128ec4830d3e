// The folds of a thread: its open messages, which are the last, the requested and those that the user opened, and its middle.
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

/** A long thread shows its first message and this many of its newest. */
const newest = 3
/** Fewer messages than this are not worth a fold. */
const fewest = 3

/**
 * Returns how many messages after the first are folded to one line: none once the user unfolds them, or if one of them is in
 * `wanted`. The number stays when new messages arrive, so that no visible message disappears.
 */
export function useMiddle(
  messages: readonly Message[],
  hasMore: boolean,
  wanted: readonly (string | undefined)[],
): { count: number; unfold: () => void } {
  const [folded, setFolded] = useState<number | null>(null)
  const after = messages.length - 1 - (hasMore ? 0 : newest)
  if (folded === null && !hasMore && messages.length > 0) setFolded(after < fewest ? 0 : after)
  const count = folded ?? Math.max(0, after)
  const isWanted = messages.slice(1, 1 + count).some(({ id }) => wanted.includes(id))
  return { count: isWanted ? 0 : count, unfold: () => setFolded(0) }
}
