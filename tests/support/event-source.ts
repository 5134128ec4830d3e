// A reader of the live stream, written from the specification of server-sent events.
import type { Scope } from './until.ts'

export interface StreamedEvent {
  id: string | null
  type: string
  body: { type: string; timestamp: string; data: Record<string, unknown> }
}

export interface EventSource {
  status: number
  headers: Headers
  events: StreamedEvent[]
  /** Whether the service has ended the stream. */
  hasEnded(): boolean
  close(): void
}

/** Opens the stream and reads until it is closed or ends. */
export async function openStream(
  scope: Scope,
  base: string,
  secret: string,
  lastEventId?: string,
): Promise<EventSource> {
  const abort = new AbortController()
  const headers = { 'x-api-key': secret, ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) }
  const response = await fetch(`${base}/v1/events`, { headers, signal: abort.signal })
  const events: StreamedEvent[] = []
  let ended = false
  const reading = read(response, events)
    .catch(() => {}) // closed by us, or broken by the service
    .finally(() => (ended = true))
  const close = () => abort.abort()
  scope.after(async () => {
    close()
    await reading
  })
  return { status: response.status, headers: response.headers, events, hasEnded: () => ended, close }
}

async function read(response: Response, events: StreamedEvent[]): Promise<void> {
  let text = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    const blocks = text.split('\n\n')
    text = blocks.pop()!
    for (const block of blocks) {
      const event = parseBlock(block)
      if (event) events.push(event)
    }
  }
}

function parseBlock(block: string): StreamedEvent | null {
  const fields = new Map(
    block.split('\n').map((line) => {
      const colon = line.indexOf(': ')
      return [line.slice(0, colon), line.slice(colon + 2)] as const
    }),
  )
  const body = fields.get('data')
  if (body === undefined) return null
  return { id: fields.get('id') ?? null, type: fields.get('event') ?? 'message', body: JSON.parse(body) }
}
