// The open overlay of the shell: the palette, the list of shortcuts, or the pages on a phone.
import { useSyncExternalStore } from 'react'

export type Overlay = 'palette' | 'shortcuts' | 'pages'

let open: Overlay | null = null
const watchers = new Set<() => void>()

export function openOverlay(next: Overlay | null): void {
  open = next
  for (const watcher of watchers) watcher()
}

export function useOverlay(): Overlay | null {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    () => open,
  )
}
