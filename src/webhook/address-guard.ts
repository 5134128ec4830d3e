// Decides which URLs a customer may have called, and which addresses a call may connect to.
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

export interface AddressGuardOptions {
  /** Whether an address is globally reachable unicast. */
  isPublic: (ip: string) => boolean
  /** Private and loopback addresses may be reached, with and without TLS. */
  allowPrivateNetworks: boolean
  /** Loopback addresses may be reached, with and without TLS. */
  isDevelopment: boolean
}

const maxUrl = 2_048
// Servers on these ports speak other protocols, and some act on the parts of an HTTP request that they understand. The
// list has mail, the blocked ports of browsers, databases, caches, queues and cluster controls.
const refusedPorts = new Set([
  ...[
    0, 7, 9, 13, 19, 20, 21, 22, 23, 25, 37, 42, 53, 69, 79, 110, 111, 119, 123, 135, 137, 139, 143, 161, 179,
    389,
  ],
  ...[
    427, 445, 465, 500, 512, 513, 514, 515, 532, 540, 548, 554, 587, 601, 636, 873, 993, 995, 1025, 1433,
    1434, 1521,
  ],
  ...[
    1720, 1723, 2049, 2375, 2376, 2379, 2380, 2525, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5433,
    5672, 5984,
  ],
  ...[
    5985, 5986, 6000, 6379, 6432, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 8025, 8026, 8500, 9042,
    9092, 9200,
  ],
  ...[9300, 10080, 10250, 10255, 11211, 26379, 27017, 27018, 27019, 50000],
])

/** Checks when an endpoint is created, and again for every call and connection, because a name's addresses change. */
export class AddressGuard {
  readonly #options: AddressGuardOptions

  constructor(options: AddressGuardOptions) {
    this.#options = options
  }

  /** Null if the URL may be an endpoint. Otherwise says what is wrong, in words. Does not look names up. */
  refusalOf(text: string): string | null {
    const { isDevelopment, allowPrivateNetworks } = this.#options
    if (text.length > maxUrl) return `must be at most ${maxUrl} characters`
    const url = /^[^\s\p{Cc}\\]+$/u.test(text) ? URL.parse(text) : null
    if (!url) return 'must be a URL'
    const isSafe = url.protocol === 'https:'
    if (!isSafe && url.protocol !== 'http:') return 'must begin with https://'
    if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
    if (url.hash !== '') return 'must not have a fragment'
    if (url.port !== '' && refusedPorts.has(Number(url.port))) return `must not name port ${url.port}`
    const host = hostOf(url)
    const mayBePlain = allowPrivateNetworks || (isDevelopment && isLoopback(host))
    if (!isSafe && !mayBePlain) return 'must begin with https://'
    return isIP(host) ? this.#refusalOfAddress(text, url, host) : this.#refusalOfName(host)
  }

  /** Whether a call may connect to this address. */
  allows(ip: string): boolean {
    const { isPublic, allowPrivateNetworks, isDevelopment } = this.#options
    if (allowPrivateNetworks || (isDevelopment && isLoopback(ip))) return true
    return isPublic(ip) && !isOwn(ip)
  }

  #refusalOfAddress(text: string, url: URL, host: string): string | null {
    // Decimal, octal, hexadecimal and shortened forms (`0x7f.1`, `2130706433`) hide an address from human readers.
    const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1]?.replace(/:\d*$/, '')
    if (authority?.toLowerCase() !== url.hostname && isIP(host) === 4)
      return 'must write an IPv4 address as four decimal numbers'
    return this.allows(host) ? null : 'must lead to a public address'
  }

  #refusalOfName(host: string): string | null {
    const { allowPrivateNetworks, isDevelopment } = this.#options
    if (allowPrivateNetworks || (isDevelopment && isLoopback(host))) return null
    if (host.endsWith('.')) return 'must have a host name without a dot at its end'
    if (!host.includes('.') || /\.(localhost|local|localdomain|internal|intranet|lan|home\.arpa)$/.test(host))
      return 'must lead to a public address'
    return null
  }
}

/** The host to look up or connect to. IPv6 has no brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1')
}

/** `localhost` (RFC 6761 6.3), 127.0.0.0/8 or ::1. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

/** This machine's own addresses, also public ones. Services that should be open only to neighbours may listen there. */
function isOwn(ip: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === ip),
  )
}
