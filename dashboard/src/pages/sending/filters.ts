// The filters of the list of sends, as in the page's address and as the API takes them.
import type { Schemas } from '../../api/client.ts'
import type { sending } from '../../texts/sending.ts'

export type Period = keyof typeof sending.periods
type Status = Schemas['Submission']['status']

/** The texts in the page's query string. */
export interface Filters {
  status?: string | undefined
  recipient?: string | undefined
  inbox?: string | undefined
  period?: string | undefined
  since?: string | undefined
  until?: string | undefined
}

const hourMs = 3_600_000
const periodMs: Partial<Record<Period, number>> = {
  '1h': hourMs,
  '24h': 24 * hourMs,
  '7d': 168 * hourMs,
  '30d': 720 * hourMs,
}
export const statuses: Status[] = ['pending', 'delivered', 'partially_delivered', 'failed']

export function hasFilters(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== undefined && value !== '')
}

/** A period always ends now. Incomplete times are left out. */
export function queryOf({ status, recipient, inbox, period, since, until }: Filters, nowMs: number) {
  const lengthMs = periodMs[period as Period]
  const from = lengthMs === undefined ? timeOf(since) : new Date(nowMs - lengthMs).toISOString()
  const to = lengthMs === undefined ? timeOf(until) : null
  return {
    ...(statuses.includes(status as Status) && { status: status as Status }),
    ...(recipient && { recipient }),
    ...(inbox && { inboxId: inbox }),
    ...(from && { since: from }),
    ...(to && { until: to }),
  }
}

/** Reads the value of a `datetime-local` field, a time in this machine's zone. */
function timeOf(text: string | undefined): string | null {
  const ms = Date.parse(text ?? '')
  return Number.isFinite(ms) ? new Date(ms).toISOString() : null
}
