// Runs Debian's Knot DNS with a zone that a test writes, and unbound before it, both on their own loopback ports.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Resolver } from '../../src/dns/resolver.ts'
import { freePort } from '../support/free-port.ts'
import { inherited } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'

const [knotd, unbound] = ['/usr/sbin/knotd', '/usr/sbin/unbound']

/** Returns why the servers cannot run here, or null. */
export function nameServersMissing(): string | null {
  for (const [file, name] of [
    [knotd, 'knot'],
    [unbound, 'unbound'],
  ] as const) {
    try {
      accessSync(file)
    } catch {
      // Not installed.
      return `${file} is not installed (apt-get install ${name})`
    }
  }
  return null
}

/** A delegated zone as the world sees it: an authoritative server behind a resolver without a cache. */
export class NameServers {
  readonly #folder: string
  readonly #zone: string
  #knot: ChildProcess | null = null
  #unbound: ChildProcess | null = null
  #serial = 0
  /** The resolver, `ip:port`. */
  readonly address: string
  /** The authoritative server, which knows the zone and queries no other server. */
  readonly authority: string

  private constructor(folder: string, zone: string, ports: { unbound: number; knot: number }) {
    this.#folder = folder
    this.#zone = zone
    this.address = `127.0.0.1:${ports.unbound}`
    this.authority = `127.0.0.1:${ports.knot}`
  }

  static async start(scope: Scope, zone: string): Promise<NameServers> {
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-dns-'))
    chmodSync(folder, 0o755)
    for (const name of ['knot', 'run']) mkdirSync(join(folder, name))
    const ports = { knot: await freePort(), unbound: await freePort() }
    const servers = new NameServers(folder, zone, ports)
    writeFileSync(join(folder, 'knot.conf'), knotConfiguration(folder, zone, ports.knot))
    writeFileSync(join(folder, 'unbound.conf'), unboundConfiguration(folder, zone, ports))
    scope.after(async () => {
      await servers.stopAuthority()
      await servers.#stopUnbound()
      rmSync(folder, { recursive: true, force: true })
    })
    servers.#write('')
    servers.#startKnot()
    servers.#startUnbound()
    await servers.#settled()
    return servers
  }

  /** Replaces the zone with these lines and the records the zone itself needs. */
  async publish(lines: string): Promise<void> {
    this.#write(lines)
    this.#knot?.kill('SIGHUP')
    await this.#settled()
  }

  /** Stops the authoritative server, so the resolver cannot reach it. */
  async stopAuthority(): Promise<void> {
    const knot = this.#knot
    this.#knot = null
    if (knot) await end(knot)
  }

  /**
   * Starts the authoritative server again. Restarts the resolver, which remembers a dead server for minutes that a test's
   * clock skips.
   */
  async startAuthority(): Promise<void> {
    await this.#stopUnbound()
    this.#startKnot()
    this.#startUnbound()
    await this.#settled()
  }

  #startKnot(): void {
    this.#knot = spawn(knotd, ['-c', join(this.#folder, 'knot.conf')], {
      env: inherited(),
      stdio: 'ignore',
    })
  }

  #startUnbound(): void {
    this.#unbound = spawn(unbound, ['-d', '-c', join(this.#folder, 'unbound.conf')], {
      env: inherited(),
      stdio: 'ignore',
    })
  }

  async #stopUnbound(): Promise<void> {
    if (this.#unbound) await end(this.#unbound)
  }

  #write(lines: string): void {
    const serial = ++this.#serial
    const own = [
      `${this.#zone}. 60 IN SOA ns.${this.#zone}. hostmaster.${this.#zone}. ${serial} 60 60 60 0`,
      `${this.#zone}. 60 IN NS ns.${this.#zone}.`,
      `ns.${this.#zone}. 60 IN A 127.0.0.1`,
      `serial.${this.#zone}. 60 IN TXT "${serial}"`,
    ]
    writeFileSync(join(this.#folder, 'knot', `${this.#zone}.zone`), `${own.join('\n')}\n${lines}`)
  }

  /** Waits until the resolver answers with the newest serial. */
  async #settled(): Promise<void> {
    const resolver = new Resolver({ servers: [this.address], timeoutMs: 500, tries: 1 })
    await until(`unbound to answer from serial ${this.#serial}`, async () => {
      const answer = await resolver.resolve('TXT', `serial.${this.#zone}`)
      return answer.status === 'ok' && answer.records[0] === String(this.#serial)
    }).catch((error) => {
      throw new Error(`${error.message}\n${this.log()}`)
    })
  }

  log(): string {
    const read = (name: string) => {
      try {
        return readFileSync(join(this.#folder, name), 'utf8').split('\n').slice(-15).join('\n')
      } catch {
        // The log has not been written.
        return ''
      }
    }
    return `${read('knot.log')}\n${read('unbound.log')}`
  }
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

function knotConfiguration(folder: string, zone: string, port: number): string {
  return `server:
  listen: 127.0.0.1@${port}
  rundir: ${folder}/run
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: ${folder}/knot
log:
  - target: ${folder}/knot.log
    any: info
zone:
  - domain: ${zone}
    storage: ${folder}/knot
    file: ${zone}.zone
    zonefile-sync: -1
    zonefile-load: whole
    journal-content: none
`
}

function unboundConfiguration(
  folder: string,
  zone: string,
  { knot, unbound: port }: { knot: number; unbound: number },
): string {
  return `server:
  interface: 127.0.0.1
  port: ${port}
  do-ip6: no
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "${folder}"
  pidfile: "${folder}/unbound.pid"
  use-syslog: no
  logfile: "${folder}/unbound.log"
  num-threads: 1
  module-config: "iterator"
  do-not-query-localhost: no
  access-control: 127.0.0.0/8 allow
  cache-max-ttl: 0
  cache-max-negative-ttl: 0
  infra-host-ttl: 0
remote-control:
  control-enable: no
stub-zone:
  name: "${zone}"
  stub-addr: 127.0.0.1@${knot}
`
}
