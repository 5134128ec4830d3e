// Why a button does nothing for this member: the reason that it says instead of acting.
import { may } from '../texts/may.ts'
import { useMay } from './session.ts'

/**
 * The reason for a button's `refusal`, or undefined where the member may. `change`: not for viewers; `own`: for owners
 * alone. The service refuses in the same way.
 */
export function useRefusal(what: 'change' | 'own'): string | undefined {
  const isAllowed = useMay(what)
  return isAllowed ? undefined : may[what]
}
