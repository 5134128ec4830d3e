// The values that settings take, each read from text; null where the text is none.
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import type { RelayTarget } from './flow/next-hop.ts'
import { defaultLimits } from './flow/organization.ts'
import { parseDomain } from './mail/address.ts'
import type { ClamdAddress } from './scan/clamd.ts'
import type { Limits } from './store/organizations.ts'

export interface ListenAddress {
  host: string
  port: number
}

/** The limits that `text`, a JSON object, changes; null where a name or a value is none. */
function parseLimits(text: string): Partial<Limits> | null {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
    const isLimit = ([name, limit]: [string, unknown]) =>
      name in defaultLimits && Number.isSafeInteger(limit) && (limit as number) >= 0
    return Object.entries(value).every(isLimit) ? value : null
  } catch {
    return null // not JSON
  }
}

export function limits(text: string): Limits | null {
  const changed = parseLimits(text)
  return changed && { ...defaultLimits, ...changed }
}

export function string(text: string): string {
  return text
}

export function domain(text: string): string | null {
  return parseDomain(text)
}

export function boolean(text: string): boolean | null {
  return text === 'true' ? true : text === 'false' ? false : null
}

export function integer(min: number, max: number) {
  return (text: string) =>
    /^\d{1,12}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : null
}

export function port(text: string): number | null {
  return integer(0, 65_535)(text)
}

export function oneOf<Value extends string>(...values: Value[]) {
  return (text: string) => values.find((value) => value === text) ?? null
}

export function list<Value>(parse: (text: string) => Value | null) {
  return (text: string): Value[] | null => {
    const values = text.split(',').map((item) => parse(item.trim()))
    return values.includes(null) ? null : (values as Value[])
  }
}

export function address(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text)
  const host = match?.[1] ?? match?.[2]
  const number = port(match?.[3] ?? '')
  return host && number !== null ? { host, port: number } : null
}

/** `host:port`, or the path of a socket. */
export function clamdAddress(text: string): ClamdAddress | null {
  return text.startsWith('/') ? { path: text } : address(text)
}

export function resolver(text: string): string | null {
  if (isIP(text)) return text
  const parsed = address(text)
  return parsed && isIP(parsed.host) && parsed.port > 0 ? text : null
}

export function cidr(text: string): string | null {
  return ipaddr.isValidCIDR(text) ? text : isIP(text) ? `${text}/${isIP(text) === 4 ? 32 : 128}` : null
}

export function databaseUrl(text: string): string | null {
  return /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? text : null
}

export function webUrl(text: string): string | null {
  return /^https?:\/\//.test(text) && URL.canParse(text) ? text.replace(/\/+$/, '') : null
}

export function fileUrl(text: string): string | null {
  return text.startsWith('file:') ? resolve(text.replace(/^file:(?:\/\/(?=\/))?/, '')) : null
}

export function relayUrl(text: string): RelayTarget | null {
  if (!/^smtps?:\/\//.test(text) || !URL.canParse(text)) return null
  const { protocol, hostname, port: number, username, password } = new URL(text)
  const implicit = protocol === 'smtps:'
  if (!hostname) return null
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(number || (implicit ? 465 : 25)),
    tls: implicit ? 'implicit' : 'opportunistic',
    auth: username ? { user: decodeURIComponent(username), password: decodeURIComponent(password) } : null,
  }
}
