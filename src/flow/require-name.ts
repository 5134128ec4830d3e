// Checks the names that people give, and trims them.
import { ServiceError } from '../base/errors.ts'
import { displayNameRule, nameRule, readDisplayName, readName } from '../base/name.ts'

/** The name without white space around it; `invalid_request` where it is none. */
export function requireName(given: string): string {
  const name = readName(given)
  if (name === null) throw new ServiceError('invalid_request', `/name must be a name: ${nameRule}`)
  return name
}

/** The same for the name of an inbox. */
export function requireDisplayName(given: string): string {
  const name = readDisplayName(given)
  if (name === null)
    throw new ServiceError('invalid_request', `/displayName must be a name: ${displayNameRule}`)
  return name
}
