// The one form in which the domains of a mail are asked for in DNS and compared, and what the public suffix list knows of them.
import { getDomain, getPublicSuffix } from 'tldts'
import { parseDomain } from '../../mail/address.ts'

const maxNameLength = 253
const underscored = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The name in A-labels and lower case; null where it is none that DNS could hold mail for: an address, a name with NUL or
 * white space, an empty label. Labels with underscores, which no host has, are names all the same.
 */
export function toDnsName(given: string): string | null {
  const name = parseDomain(given)
  if (name !== null) return name
  if (given.length > maxNameLength) return null
  const lower = given.toLowerCase()
  return underscored.test(lower) ? lower : null
}

/** Whether DNS can hold the name. */
export function fitsDns(name: string): boolean {
  return name.length <= maxNameLength
}

const wholeList = { allowPrivateDomains: true, extractHostname: false }

/** Whether everybody can have a name below this one, as far as the public suffix list knows. */
export function isPublicSuffix(name: string): boolean {
  return getPublicSuffix(name, wholeList) === name
}

/** The name that somebody registered for it, by the public suffix list; the name itself where that is a suffix. */
export function registeredDomain(name: string): string {
  return getDomain(name, wholeList) ?? name
}

/** Whether one name is the other, or below it. */
export function isWithin(name: string, parent: string): boolean {
  return name === parent || name.endsWith(`.${parent}`)
}
