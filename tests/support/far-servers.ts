// Mail servers for tests that share a node: each test adds a domain and a server, and one DNS server names them all.
import { DnsServer } from './dns-server.ts'
import { type Sink, type SinkOptions, startSink } from './sink.ts'
import type { Scope } from './until.ts'

export interface FarServers {
  dns: DnsServer
  /** The port of every server, each at its own address. */
  port: number
  /** The settings of a node that delivers to them. */
  env: Record<string, string>
  /** A domain whose address is in DNS and whose server does not listen yet. */
  name(): { domain: string; host: string }
  /** A domain and its mail server, which ends with the scope. */
  start(scope: Scope, options?: SinkOptions): Promise<{ domain: string; sink: Sink }>
}

export async function makeFarServers(scope: Scope): Promise<FarServers> {
  const dns = await DnsServer.start()
  scope.after(() => dns.close())
  /** Reserves the port, and takes no mail. */
  const { port } = await startSink(scope, { host: '127.0.0.40' })
  const env = {
    POSTHORN_DELIVERY: 'direct',
    POSTHORN_DNS: dns.address,
    POSTHORN_MX_PORT: String(port),
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  }
  let count = 0
  const name = () => {
    count++
    const [domain, host] = [`far${count}.test`, `127.0.0.${40 + count}`]
    dns.set(domain, { A: [host] })
    return { domain, host }
  }
  const start: FarServers['start'] = async (scope, options = {}) => {
    const { domain, host } = name()
    return { domain, sink: await startSink(scope, { ...options, host, port }) }
  }
  return { dns, port, env, name, start }
}
