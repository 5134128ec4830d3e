// What happens to the organization's mail, as it happens: pages ask again for what an event has changed.
import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useEffect, useEffectEvent, useRef } from 'react'
import { type LiveEvent, onLiveEvent } from '../api/live.ts'

/** Calls `run` with each event, as a webhook would be; `stream.reset` means that some were missed. */
function useLive(run: (event: LiveEvent) => void): void {
  const latest = useEffectEvent(run)
  useEffect(() => onLiveEvent((event) => latest(event)), [])
}

const refreshMs = 1_500

/** Asks again for what these keys begin, soon after an event whose type begins so; many events are one asking. */
export function useLiveQueries(begins: string, keys: readonly QueryKey[]): void {
  const queries = useQueryClient()
  const due = useRef<ReturnType<typeof setTimeout>>(undefined)
  useLive(({ type }) => {
    if (due.current !== undefined || !(type.startsWith(begins) || type === 'stream.reset')) return
    due.current = setTimeout(() => {
      due.current = undefined
      for (const queryKey of keys) void queries.invalidateQueries({ queryKey })
    }, refreshMs)
  })
  useEffect(() => () => clearTimeout(due.current), [])
}
