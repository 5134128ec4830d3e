// What the desk says of health: the doctor's checks, with what to do about each.
import Type, { type Static } from 'typebox'
import { oneOf, orNull, Time } from './scalars.ts'

const Check = Type.Object({
  name: Type.String(),
  status: oneOf(['ok', 'warning', 'failed', 'skipped']),
  detail: Type.String(),
  /** What to do about it; null where there is nothing to do. */
  mend: orNull(Type.String()),
})
export type Check = Static<typeof Check>

export const Health = Type.Object({
  /** `none`: nobody has asked since this node started. */
  state: oneOf(['none', 'running', 'done', 'failed']),
  checks: Type.Array(Check),
  fault: orNull(Type.String()),
  startedAt: orNull(Time),
  endedAt: orNull(Time),
})
export type Health = Static<typeof Health>
