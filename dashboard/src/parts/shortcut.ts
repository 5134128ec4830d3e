// Keyboard shortcuts that work while a page is shown (`c`, `g m`, `Mod k`), and the list of them for the sheet.
import { useEffect, useEffectEvent, useSyncExternalStore } from 'react'

export interface Shortcut {
  /** One key, or several in sequence. `Mod` is Command on a Mac and Ctrl elsewhere. */
  keys: string
  label: string
  /** The heading of its group in the sheet. */
  group: string
}

interface Registered extends Shortcut {
  run: (event: KeyboardEvent) => void
}

const sequenceMs = 1_000
let registered: readonly Registered[] = []
const watchers = new Set<() => void>()
let begun: { key: string; atMs: number } | null = null

function change(next: readonly Registered[]): void {
  registered = next
  for (const watcher of watchers) watcher()
}

/** Registers `run` while the component is mounted. If several have the same keys, the latest wins. */
export function useShortcut({ keys, label, group }: Shortcut, run: (event: KeyboardEvent) => void): void {
  const latest = useEffectEvent(run)
  useEffect(() => {
    const one: Registered = { keys, label, group, run: (event) => latest(event) }
    change([...registered, one])
    return () => change(registered.filter((other) => other !== one))
  }, [keys, label, group])
}

/** Returns the current shortcuts. */
export function useShortcuts(): readonly Shortcut[] {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    () => registered,
  )
}

/** Returns whether the keys go to a text input. */
function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}

function written(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key
  return event.metaKey || event.ctrlKey ? `Mod ${key}` : key
}

/** Listens for all shortcuts. Called once at startup. */
export function listenForShortcuts(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.altKey || event.isComposing) return
    const key = written(event)
    const isWithMod = key.startsWith('Mod ')
    if (!isWithMod && (isTyping(event.target) || document.querySelector('[role=dialog],[role=menu]'))) return
    const sequence = begun && event.timeStamp - begun.atMs < sequenceMs ? `${begun.key} ${key}` : key
    const found =
      registered.findLast(({ keys }) => keys === sequence) ?? registered.findLast(({ keys }) => keys === key)
    begun = found ? null : { key, atMs: event.timeStamp }
    if (!found) return
    event.preventDefault()
    found.run(event)
  })
}
