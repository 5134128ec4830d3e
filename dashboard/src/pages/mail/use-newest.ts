// Calls a list's refresh when mail of its inbox comes or goes while the list is visible.
import { useEffect, useRef } from 'react'
import { allInboxes } from './place.ts'

const gatherMs = 250

/** Events that follow each other within a quarter of a second cause one refresh. */
export function useNewest(inboxId: string, refresh: () => Promise<unknown>): void {
  const latest = useRef(refresh)
  latest.current = refresh
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let stop: (() => void) | null = null
    let isOver = false
    const run = () => {
      timer = undefined
      void latest.current().catch(() => {})
    }
    void import('../../api/live.ts').then(({ onLiveEvent }) => {
      if (isOver) return
      stop = onLiveEvent(({ type, data }) => {
        const changed = data.message?.inboxId
        if (type === 'stream.reset' || changed === inboxId || (changed && inboxId === allInboxes))
          timer ??= setTimeout(run, gatherMs)
      })
    })
    return () => {
      isOver = true
      stop?.()
      clearTimeout(timer)
    }
  }, [inboxId])
}
