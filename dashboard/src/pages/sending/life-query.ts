// The queries of the submission page, repeated until every recipient is final.
import { useQuery } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'
import { isSettled, type Life, type LifeEvent, type Submission } from './journey.ts'

const quickMs = 1_000
const slowestMs = 30_000
/** A report can arrive weeks later, so a slow interval is enough. */
const settledMs = 60_000
const pageSize = 100
const mostEvents = 3_000

export interface Telling {
  submission: Submission
  events: LifeEvent[]
  life: Life
}

export const lifeKey = (submissionId: string) => ['submission', submissionId] as const

export function useTelling(submissionId: string) {
  return useQuery({
    queryKey: lifeKey(submissionId),
    queryFn: () => readTelling(submissionId),
    refetchInterval: ({ state }) => (state.data ? waitMs(state.data) : false),
  })
}

async function readTelling(submissionId: string): Promise<Telling> {
  const path = { submissionId }
  const [submission, events, life] = await Promise.all([
    read(api.GET('/v1/submissions/{submissionId}', { params: { path } })),
    readEvents(submissionId),
    read(api.GET('/v1/submissions/{submissionId}/life', { params: { path } })),
  ])
  return { submission, events, life }
}

async function readEvents(submissionId: string): Promise<LifeEvent[]> {
  const events: LifeEvent[] = []
  let cursor: string | null = null
  do {
    const query: { limit: number; cursor?: string } = { limit: pageSize, ...(cursor && { cursor }) }
    const path = { submissionId }
    const page: { events: LifeEvent[]; nextCursor: string | null } = await read(
      api.GET('/v1/submissions/{submissionId}/events', { params: { path, query } }),
    )
    events.push(...page.events)
    cursor = page.nextCursor
  } while (cursor !== null && events.length < mostEvents)
  return events
}

/** Short after an event, longer the longer nothing happens, and right at the next attempt. */
function waitMs({ submission, life }: Telling): number {
  if (isSettled(submission)) return settledMs
  const quietMs = Date.now() - Date.parse(submission.updatedAt)
  const next = life.recipients.flatMap(({ nextAttemptAt }) =>
    nextAttemptAt ? [Date.parse(nextAttemptAt)] : [],
  )
  const untilNextMs = Math.min(...next) - Date.now()
  const calmMs = Math.min(slowestMs, Math.max(quickMs, quietMs / 8))
  return untilNextMs > quickMs ? Math.min(calmMs, untilNextMs) : Math.min(calmMs, 3 * quickMs)
}
