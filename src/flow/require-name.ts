// Names as everything is called by that people name: trimmed, and refused where they are none.
import { ServiceError } from '../base/errors.ts'
import { nameRule, readName } from '../base/name.ts'

/** The name without white space around it; `invalid_request` where it is none. */
export function requireName(given: string, pointer = '/name'): string {
  const name = readName(given)
  if (name === null) throw new ServiceError('invalid_request', `${pointer} must be a name: ${nameRule}`)
  return name
}
