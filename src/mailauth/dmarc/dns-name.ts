// Gives the domains of a mail one form for DNS questions and comparisons, and consults the public suffix list about them.
import { getDomain, getPublicSuffix } from 'tldts'
import { parseDomain } from '../../mail/address.ts'

const maxNameLength = 253
const underscored = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The name in A-labels and lower case. Null if it cannot have mail in DNS: an address, a name with NUL or white space,
 * an empty label. Labels with underscores, which no host has, are allowed.
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

/** Whether anybody can register a name below this one, by the public suffix list. */
export function isPublicSuffix(name: string): boolean {
  return getPublicSuffix(name, wholeList) === name
}

/** The registered domain of the name, by the public suffix list. A suffix is returned as it is. */
export function registeredDomain(name: string): string {
  return getDomain(name, wholeList) ?? name
}

/** Whether `name` is `parent` or below it. */
export function isWithin(name: string, parent: string): boolean {
  return name === parent || name.endsWith(`.${parent}`)
}
