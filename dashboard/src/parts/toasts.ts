// Short messages about completed actions, and actions that can be undone for ten seconds.
import { useSyncExternalStore } from 'react'

export interface Toast {
  id: number
  text: string
  tone: 'plain' | 'bad'
  /** The end of the undo period, in milliseconds since 1970. Null: nothing can be undone. */
  undoUntilMs: number | null
}

export const undoMs = 10_000
const visibleMs = 5_000

interface Pending {
  timer: ReturnType<typeof setTimeout>
  commit: () => void
  undone: () => void
}

let toasts: readonly Toast[] = []
let lastId = 0
const watchers = new Set<() => void>()
const pending = new Map<number, Pending>()

function change(next: readonly Toast[]): void {
  toasts = next
  for (const watcher of watchers) watcher()
}

function add(toast: Omit<Toast, 'id'>): number {
  const id = ++lastId
  change([...toasts.slice(-3), { ...toast, id }])
  return id
}

/** Shows a message about a completed action. */
export function toast(text: string, tone: Toast['tone'] = 'plain'): void {
  const id = add({ text, tone, undoUntilMs: null })
  setTimeout(() => dismiss(id), visibleMs)
}

/**
 * Calls `commit` after ten seconds, or `undone` if the user undoes it. Leaving the page commits at once, so `commit`
 * must send its request with `keepalive`.
 */
export function toastUndoable(text: string, { commit, undone }: Omit<Pending, 'timer'>): void {
  const id = add({ text, tone: 'plain', undoUntilMs: Date.now() + undoMs })
  pending.set(id, { commit, undone, timer: setTimeout(() => settle(id), undoMs) })
}

function settle(id: number): void {
  const one = pending.get(id)
  pending.delete(id)
  clearTimeout(one?.timer)
  dismiss(id)
  one?.commit()
}

export function undo(id: number): void {
  const one = pending.get(id)
  pending.delete(id)
  clearTimeout(one?.timer)
  dismiss(id)
  one?.undone()
}

/** Removes a message. An action that still waits runs now. */
export function dismiss(id: number): void {
  if (pending.has(id)) settle(id)
  else change(toasts.filter((one) => one.id !== id))
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    () => toasts,
  )
}

addEventListener('pagehide', () => {
  for (const id of [...pending.keys()]) settle(id)
})
