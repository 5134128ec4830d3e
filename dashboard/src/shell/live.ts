// What happens to the organization's mail, as it happens: one stream for all pages, over which the browser takes care.
import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useEffect, useEffectEvent, useRef } from 'react'

type Listener = (type: string, body: unknown) => void

const types = [
  ...['message.received', 'message.sent', 'message.delivered', 'message.deferred', 'message.bounced'],
  ...['message.failed', 'message.complained', 'attachment.scanned', 'suppression.created'],
  ...['domain.verified', 'domain.failed', 'stream.reset'],
]
const lingerMs = 5_000
const listeners = new Set<Listener>()
let source: EventSource | null = null
let ending: ReturnType<typeof setTimeout> | undefined

function begin(): void {
  clearTimeout(ending)
  if (source && source.readyState !== EventSource.CLOSED) return
  source = new EventSource('/app/v1/events')
  for (const type of types)
    source.addEventListener(type, ({ data: text }: MessageEvent<string>) => {
      const body: unknown = text ? JSON.parse(text) : null
      for (const listener of listeners) listener(type, body)
    })
}

/** The next page may want it at once. */
function endSoon(): void {
  ending = setTimeout(() => {
    if (listeners.size > 0) return
    source?.close()
    source = null
  }, lingerMs)
}

/** Calls `run` with the type and the body of each event, as a webhook would be; `stream.reset` means that some were missed. */
export function useLive(run: Listener): void {
  const latest = useEffectEvent(run)
  useEffect(() => {
    const listener: Listener = (type, body) => latest(type, body)
    listeners.add(listener)
    begin()
    return () => {
      listeners.delete(listener)
      endSoon()
    }
  }, [])
}

const refreshMs = 1_500

/** Asks again for what these keys begin, soon after an event whose type begins so; many events are one asking. */
export function useLiveQueries(begins: string, keys: readonly QueryKey[]): void {
  const queries = useQueryClient()
  const due = useRef<ReturnType<typeof setTimeout>>(undefined)
  useLive((type) => {
    if (due.current !== undefined || !(type.startsWith(begins) || type === 'stream.reset')) return
    due.current = setTimeout(() => {
      due.current = undefined
      for (const queryKey of keys) void queries.invalidateQueries({ queryKey })
    }, refreshMs)
  })
  useEffect(() => () => clearTimeout(due.current), [])
}
