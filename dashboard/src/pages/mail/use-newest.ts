// Calls a list's refresh when mail of its inbox comes or goes while the list is visible.
import { useEffect, useRef } from 'react'
import { allInboxes } from './place.ts'

const gatherMs = 250
/** The pause between two refreshes, so that a burst of mail does not use up the member's request rate. */
const pauseMs = 1_000

/** One refresh runs at a time, and includes all events of a quarter of a second. */
export function useNewest(inboxId: string, refresh: () => Promise<unknown>): void {
  const latest = useRef(refresh)
  latest.current = refresh
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let stop: (() => void) | null = null
    let isOver = false
    let isStale = false
    // The timer stays set until the pause is over.
    const schedule = () => {
      isStale = true
      timer ??= setTimeout(run, gatherMs)
    }
    const run = async () => {
      isStale = false
      await latest.current().catch(() => {})
      if (!isOver) timer = setTimeout(endPause, pauseMs)
    }
    const endPause = () => {
      timer = undefined
      if (isStale) schedule()
    }
    void import('../../api/live.ts').then(({ onLiveEvent }) => {
      if (isOver) return
      stop = onLiveEvent(({ type, data }) => {
        const changed = data.message?.inboxId
        if (type === 'stream.reset' || changed === inboxId || (changed && inboxId === allInboxes)) schedule()
      })
    })
    return () => {
      isOver = true
      stop?.()
      clearTimeout(timer)
    }
  }, [inboxId])
}
