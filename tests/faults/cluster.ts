// Two or more nodes over one PostgreSQL of their own on TCP, with the far domains that they deliver to, each by its queue.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Api, Inbox } from '../support/api.ts'
import { DnsServer, type ZoneRecords } from '../support/dns-server.ts'
import { ExternalServer } from '../support/external-server.ts'
import { freePort } from '../support/free-port.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'

export interface Cluster {
  server: ExternalServer
  nodes: [Posthorn, Posthorn, ...Posthorn[]]
  sink: Sink
  /** The key of the organization's caller, for an `Api` at any address. */
  secret: string
  /** At the first node. */
  api: Api
  inboxes: Inbox[]
}

/** Differences of a node from the default. */
interface NodeOptions {
  program?: string
  env?: Record<string, string>
}

interface Options {
  /** The address of this machine that PostgreSQL, the sink, the DNS server and the first node listen on. */
  host?: string
  /** PostgreSQL's port; any if it is missing. */
  port?: number
  /** Further environment of PostgreSQL. */
  databaseEnv?: Record<string, string>
  first?: NodeOptions
  second?: NodeOptions
  /** The number of nodes after the second. */
  more?: number
}

/** Starts the whole cluster, which ends with the scope. */
export async function startCluster(scope: Scope, options: Options = {}): Promise<Cluster> {
  const { host = '127.0.0.1', port = await freePort() } = options
  const server = await ExternalServer.make(scope)
  server.env = options.databaseEnv ?? {}
  appendFileSync(join(server.folder, 'cluster/pg_hba.conf'), 'host all all samenet trust\n')
  await server.start(`port=${port}`, `listen_addresses=127.0.0.1,${host}`)
  const sink = await startSink(scope, { host })
  const dns = await DnsServer.start(farZone(host), { host })
  scope.after(() => dns.close())
  const env = {
    POSTHORN_DATABASE_URL: `postgres://posthorn@${host}:${port}/postgres`,
    POSTHORN_HTTP: `${host}:0`,
    POSTHORN_SMTP: `${host}:0`,
    POSTHORN_SMTP_TRUSTED: '127.0.0.0/8,10.0.0.0/8',
    POSTHORN_TRUSTED_PROXIES: '127.0.0.0/8',
    POSTHORN_DELIVERY: 'direct',
    POSTHORN_MX_PORT: String(sink.port),
    POSTHORN_DNS: dns.address,
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    POSTHORN_RETRY_SCHEDULE: '1s,2s',
  }
  const first = await startPosthorn(scope, { ...options.first, env: { ...env, ...options.first?.env } })
  const shared = {
    POSTHORN_SECRET_KEY_FILE: join(first.folder, 'secret-key'),
    POSTHORN_BLOB_URL: `file:${join(first.folder, 'blobs')}`,
  }
  const joinAs = (node?: NodeOptions) =>
    startPosthorn(scope, { ...node, env: { ...env, ...shared, ...node?.env } })
  const second = await joinAs(options.second)
  const others: Posthorn[] = []
  for (let count = options.more ?? 0; count > 0; count--) others.push(await joinAs())
  const { api, secret } = await createCaller(first)
  const inboxes = await Promise.all([1, 2, 3, 4].map(() => api.createInbox()))
  return { server, nodes: [first, second, ...others], sink, secret, api, inboxes }
}

/** The domains of `load.ts`, all at one mail server, and the sender's. */
function farZone(host: string): Record<string, ZoneRecords> {
  const names = [...Array.from({ length: 20 }, (_, n) => `far${n}.test`), 'sender.test']
  // Each has a provider of its own: mail to one provider shares its limits.
  const records = names.flatMap((name) => [
    [name, { MX: [[10, `mx.${name}`]] }],
    [`mx.${name}`, { A: [host] }],
  ])
  return Object.fromEntries(records)
}

/** The number of a node in the cluster; null while it has none. */
export async function numberOf({ server }: Cluster, { smtp }: Posthorn): Promise<number | null> {
  const sql = `select id::integer from node where smtp_address = '${smtp.host}:${smtp.port}' order by started_at desc`
  const [row] = await server.ask(sql)
  return (row?.['id'] as number | undefined) ?? null
}

/** Waits until all nodes count as alive. */
export async function untilAllLive({ server, nodes }: Cluster): Promise<void> {
  const count = async () => Number((await server.ask('select cardinality(living_nodes()) as n'))[0]!['n'])
  await until('all nodes to live', async () => (await count()) === nodes.length, { timeoutMs: 60_000 })
}
