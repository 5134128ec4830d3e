// Health at the desk: runs the doctor's checks on request.
import type { Desk, DeskDeps } from '../deps.ts'
import { LongWork, type WorkState } from '../long-work.ts'
import { type Check, Health } from '../schemas/health.ts'

export function healthRoutes(desk: Desk, { log, examine }: DeskDeps): void {
  const work = new LongWork<Check, void>(log)
  const schema = { response: { 200: Health } }
  desk.get('/desk/v1/health', { schema }, async () => present(work.find('health')))
  desk.post('/desk/v1/health', { schema }, async () => present(work.begin('health', examine)))
}

function present(work: WorkState<Check, void> | null): Health {
  if (!work) return { state: 'none', checks: [], fault: null, startedAt: null, endedAt: null }
  return { ...work, checks: work.steps }
}
