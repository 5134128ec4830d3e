// The live stream of events, shared by all pages, which refetches the data that an event has changed.
import type { QueryClient } from '@tanstack/react-query'
import { ApiError, api, read } from './client.ts'

export interface LiveEvent {
  type: string
  data: { message?: { inboxId: string; threadId: string } | null; messageId?: string }
}

const firstPauseMs = 1_000
const longestPauseMs = 30_000
/** The service sends something at least every 15 seconds. */
const silentMs = 45_000

type Listener = (event: LiveEvent) => void
const listeners = new Set<Listener>()

/** Calls the listener for every event while the stream runs, and with `stream.reset` if events may have been missed. */
export function onLiveEvent(listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** The queries that each event makes stale, by the first part of their keys. */
const changed: [type: RegExp, keys: string[]][] = [
  [/^message\.(?!received)/, ['submissions', 'submission', 'sending', 'metrics']],
  [/^message\.received$/, ['captured', 'metrics']],
  [/^message\.complained$/, ['complaints']],
  [/^suppression\./, ['suppressions']],
  [/^domain\./, ['domains', 'domain']],
  [/^attachment\./, ['thread']],
]

/** All of these may be stale after missed events. */
const all = new Set(['found', ...changed.flatMap(([, keys]) => keys)])

/** Follows the events while the page is visible. Hidden tabs hold no connection. The returned function ends it. */
export function followEvents(queries: QueryClient): () => void {
  const stopInvalidating = onLiveEvent((event) => invalidate(queries, event))
  let lastId: string | null = null
  let running: AbortController | null = null
  const begin = () => {
    running ??= new AbortController()
    void follow(running.signal, lastId, (id) => (lastId = id))
  }
  const end = () => {
    running?.abort()
    running = null
  }
  const look = () => {
    if (document.visibilityState === 'hidden') end()
    else if (!running) begin()
  }
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    document.removeEventListener('visibilitychange', look)
    stopInvalidating()
    end()
  }
}

function invalidate(queries: QueryClient, { type, data }: LiveEvent): void {
  const keys =
    type === 'stream.reset' ? all : changed.flatMap(([pattern, names]) => (pattern.test(type) ? names : []))
  for (const key of keys) void queries.invalidateQueries({ queryKey: [key] })
  const { threadId, inboxId } = data.message ?? {}
  if (threadId) void queries.invalidateQueries({ queryKey: ['thread', threadId] })
  if (inboxId && /^message\.(?:received|sent)$/.test(type))
    void queries.invalidateQueries({ queryKey: ['found', inboxId] })
}

/** Reads from the last event on and reconnects after errors, until it is aborted or the user is signed out. */
async function follow(signal: AbortSignal, lastId: string | null, seen: (id: string) => void): Promise<void> {
  let from = lastId
  let pauseMs = firstPauseMs
  while (!signal.aborted) {
    try {
      await readStream(signal, from, (id) => {
        pauseMs = firstPauseMs
        from = id
        seen(id)
      })
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return
    }
    await pause(pauseMs * (0.5 + Math.random()), signal)
    pauseMs = Math.min(longestPauseMs, pauseMs * 2)
  }
}

async function readStream(
  signal: AbortSignal,
  from: string | null,
  seen: (id: string) => void,
): Promise<void> {
  const silence = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const heard = () => {
    clearTimeout(timer)
    timer = setTimeout(() => silence.abort(), silentMs)
  }
  heard()
  try {
    const stream = await read<unknown>(
      api.GET('/v1/events', {
        params: { header: from === null ? {} : { 'last-event-id': from } },
        parseAs: 'stream',
        cache: 'no-store',
        signal: AbortSignal.any([signal, silence.signal]),
      }),
    )
    // The stream starts now, so data that pages read earlier may have changed since.
    if (from === null) announce({ type: 'stream.reset', data: {} })
    const lines = (stream as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new TextDecoderStream())
    await readEvents(lines, heard, seen)
  } finally {
    clearTimeout(timer)
  }
}

/** Reads the format of https://html.spec.whatwg.org/multipage/server-sent-events.html, as far as the service uses it. */
async function readEvents(
  stream: ReadableStream<string>,
  heard: () => void,
  seen: (id: string) => void,
): Promise<void> {
  let buffered = ''
  const reader = stream.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    heard()
    const blocks = (buffered + value).split('\n\n')
    buffered = blocks.pop() ?? ''
    for (const block of blocks) tell(block, seen)
  }
}

function tell(block: string, seen: (id: string) => void): void {
  const fields = new Map(block.split('\n').map((line) => line.split(/: ?(.*)/s, 2) as [string, string]))
  const id = fields.get('id')
  const body = fields.get('data')
  if (id) seen(id)
  if (body) announce(JSON.parse(body) as LiveEvent)
}

function announce(event: LiveEvent): void {
  for (const listener of listeners) listener(event)
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
