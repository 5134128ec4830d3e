// The DNS servers that are asked, in their order: those of the settings, or those of the system as they are now.
import { Resolver as SystemResolver } from 'node:dns'
import { isIPv6 } from 'node:net'
import type { ServerAddress } from './ask-server.ts'

/** How long a server that said nothing is asked after the others. */
const silentMs = 10_000
/** How old what the system says may be: `/etc/resolv.conf` changes when a network does. */
const systemMs = 30_000
const dnsPort = 53

export class NameServers {
  readonly #configured: readonly ServerAddress[]
  readonly #silentUntilMs = new Map<string, number>()
  #system: { servers: ServerAddress[]; untilMs: number } | null = null

  /** Each `ip`, `ip:port` or `[ip]:port`; none means those of the system. */
  constructor(configured: readonly string[]) {
    this.#configured = configured.map(readServer)
  }

  /** In the order to ask them: those that were silent lately come last. */
  list(): ServerAddress[] {
    const servers = this.#configured.length > 0 ? this.#configured : this.#listOfSystem()
    const nowMs = performance.now()
    const isSilent = (server: ServerAddress) => (this.#silentUntilMs.get(keyOf(server)) ?? 0) > nowMs
    return [...servers.filter((server) => !isSilent(server)), ...servers.filter(isSilent)]
  }

  /** Remembers whether the server said anything of use. */
  note(server: ServerAddress, how: 'answers' | 'silent'): void {
    if (how === 'silent') this.#silentUntilMs.set(keyOf(server), performance.now() + silentMs)
    else this.#silentUntilMs.delete(keyOf(server))
  }

  #listOfSystem(): ServerAddress[] {
    const nowMs = performance.now()
    // What the process has read once it does not read again; a new resolver of the system does.
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
