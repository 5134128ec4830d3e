// Schemas of the doctor's checks at the desk, with the remedy for each.
import Type, { type Static } from 'typebox'
import { oneOf, orNull, Time } from './scalars.ts'

const Check = Type.Object({
  name: Type.String(),
  status: oneOf(['ok', 'warning', 'failed', 'skipped']),
  detail: Type.String(),
  /** The remedy; null if nothing must be done. */
  mend: orNull(Type.String()),
})
export type Check = Static<typeof Check>

export const Health = Type.Object({
  /** `none`: no check was requested since this node started. */
  state: oneOf(['none', 'running', 'done', 'failed']),
  checks: Type.Array(Check),
  fault: orNull(Type.String()),
  startedAt: orNull(Time),
  endedAt: orNull(Time),
})
export type Health = Static<typeof Health>
