// Whether the window is as narrow as a phone's, which is Tailwind's `max-sm`.
import { useSyncExternalStore } from 'react'

const narrow = matchMedia('(width < 640px)')

export function useIsNarrow(): boolean {
  return useSyncExternalStore(
    (changed) => {
      narrow.addEventListener('change', changed)
      return () => narrow.removeEventListener('change', changed)
    },
    () => narrow.matches,
  )
}
