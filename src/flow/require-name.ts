// Checks and trims the names that people enter.
import { ServiceError } from '../base/errors.ts'
import { displayNameRule, nameRule, readDisplayName, readName } from '../base/name.ts'

/** The name without white space around it. Throws `invalid_request` if it is not a valid name. */
export function requireName(given: string): string {
  const name = readName(given)
  if (name === null) throw new ServiceError('invalid_request', `/name must be ${nameRule}`)
  return name
}

/** The same for an inbox's display name. */
export function requireDisplayName(given: string): string {
  const name = readDisplayName(given)
  if (name === null) throw new ServiceError('invalid_request', `/displayName must be ${displayNameRule}`)
  return name
}
