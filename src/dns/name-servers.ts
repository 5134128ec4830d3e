// The DNS servers to ask, in order: those of the settings, or the current ones of the system.
import { Resolver as SystemResolver } from 'node:dns'
import { isIPv6 } from 'node:net'
import type { ServerAddress } from './ask-server.ts'

/** How long a silent server is asked after the others. */
const silentMs = 10_000
/** How long the system's list is kept. `/etc/resolv.conf` changes when a network does. */
const systemMs = 30_000
const dnsPort = 53

export class NameServers {
  readonly #configured: readonly ServerAddress[]
  readonly #silentUntilMs = new Map<string, number>()
  #system: { servers: ServerAddress[]; untilMs: number } | null = null

  /** Each is `ip`, `ip:port` or `[ip]:port`. An empty list means the servers of the system. */
  constructor(configured: readonly string[]) {
    this.#configured = configured.map(readServer)
  }

  /** In the order to ask them. Servers that were silent recently come last. */
  list(): ServerAddress[] {
    const servers = this.#configured.length > 0 ? this.#configured : this.#listOfSystem()
    const nowMs = performance.now()
    const isSilent = (server: ServerAddress) => (this.#silentUntilMs.get(keyOf(server)) ?? 0) > nowMs
    return [...servers.filter((server) => !isSilent(server)), ...servers.filter(isSilent)]
  }

  /** Remembers whether the server sent anything usable. */
  note(server: ServerAddress, how: 'answers' | 'silent'): void {
    if (how === 'silent') this.#silentUntilMs.set(keyOf(server), performance.now() + silentMs)
    else this.#silentUntilMs.delete(keyOf(server))
  }

  #listOfSystem(): ServerAddress[] {
    const nowMs = performance.now()
    // The process reads the list only once. A new system resolver reads it again.
    if (!this.#system || this.#system.untilMs < nowMs)
      this.#system = {
        servers: new SystemResolver().getServers().map(readServer),
        untilMs: nowMs + systemMs,
      }
    return this.#system.servers
  }
}

function keyOf({ ip, port }: ServerAddress): string {
  return `${ip} ${port}`
}

function readServer(text: string): ServerAddress {
  const bracketed = /^\[(.+)\](?::(\d+))?$/.exec(text)
  const plain = isIPv6(text) ? null : /^([^:]+):(\d+)$/.exec(text)
  const [, ip = text, port = dnsPort] = bracketed ?? plain ?? []
  return { ip, port: Number(port), family: isIPv6(ip) ? 6 : 4 }
}
