// Restarts two nodes in turn under load, behind HAProxy that follows `/readyz`; its clients must not notice any restart.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Api } from '../support/api.ts'
import { freePort } from '../support/free-port.ts'
import { type Haproxy, startHaproxy } from '../support/haproxy.ts'
import { ownAddress } from '../support/own-address.ts'
import type { Posthorn } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { type Cluster, startCluster } from './cluster.ts'
import { listDelays, longestMs, Observer } from './delays.ts'
import { type Ledger, reconcile } from './ledger.ts'
import { type Load, seeded, startLoad } from './load.ts'
import { settle } from './settle.ts'

interface Options {
  restarts: number
  seed: number
  report: (line: string) => void
}

/** HAProxy has time for two checks of 500 ms. */
const drainDelay = '2s'
/** The number of mails and sends answered between two restarts. */
const answersEach = 60

interface Balancer extends Pick<Haproxy, 'servers'> {
  http: string
  smtp: { host: string; port: number }
}

export async function runBalancer(scope: Scope, { restarts, seed, report }: Options): Promise<Ledger> {
  const [first, second] = [{ env: await ownListeners() }, { env: await ownListeners() }]
  const cluster = await startCluster(scope, { first, second })
  const { nodes, secret, inboxes, sink } = cluster
  const balancer = await startBalancer(scope, nodes)
  const api = new Api(() => balancer.http, secret)
  const random = seeded(seed)
  const load = startLoad({ name: 'balanced', api, smtp: () => balancer.smtp, inboxes, random })
  const observer = new Observer(api, inboxes)
  scope.after(async () => void (await Promise.all([load.stop(), observer.stop()])))
  const statuses: (number | null)[] = []
  for (let number = 1; number <= restarts; number++) {
    await untilUpAndWorking(balancer, load)
    const node = nodes[number % 2]!
    statuses.push(await node.stop())
    await node.start()
    report(`restart ${number}: ${load.answeredMs.size} answered, ${load.refusals.length} not`)
  }
  await untilUpAndWorking(balancer, load)
  await load.stop()
  const { sends, arrivals } = load
  const found = await settle({ api, inboxes, sink, sends, arrivals })
  const delays = () => listDelays(load, sink.copies, observer)
  await until('all to be seen', () => delays().every(({ arrivedMs }) => arrivedMs !== null)).catch(() => {})
  await observer.stop()
  const ownDomain = inboxes[0]!.address.split('@')[1]!
  const ledger = reconcile({ sends, arrivals, kills: [], found }, ownDomain)
  const seen = judgeBalancer(await balancer.servers())
  const judged = judgeClients(load, observer)
  return {
    figures: [
      ['restarts', statuses.length],
      ...ledger.figures,
      ...judged.figures,
      ...seen.figures,
      ['slowest 202 or 250, ms', load.slowestMs],
      ['longest delay from 202 or 250 to the recipient, ms', longestMs(delays())],
    ],
    violations: [
      ...[...ledger.violations, ...judged.violations, ...seen.violations],
      ...statuses.flatMap((status) => (status === 0 ? [] : [`SIGTERM gave exit status ${status}`])),
    ],
  }
}

/** The same addresses after each start, because the balancer knows a node by them. */
async function ownListeners(): Promise<Record<string, string>> {
  return {
    POSTHORN_HTTP: await ownAddress(),
    POSTHORN_SMTP: await ownAddress(),
    POSTHORN_OPERATOR: await ownAddress(),
    POSTHORN_DRAIN_DELAY: drainDelay,
  }
}

async function untilUpAndWorking(balancer: Balancer, { answeredMs }: Load): Promise<void> {
  const areUp = async () => (await balancer.servers()).every(({ status }) => status === 'UP')
  await until('both nodes to be up for the balancer', areUp, { timeoutMs: 60_000, everyMs: 100 })
  const before = answeredMs.size
  await until('more answers', () => answeredMs.size >= before + answersEach, { timeoutMs: 60_000 })
}

/** Every request must get a response. A mail may be deferred, but must get a reply. */
function judgeClients({ refusals, surprises }: Load, { failures }: Observer): Ledger {
  const toldLater = refusals.filter((words) => /: refused at \w+ 4/.test(words))
  const unanswered = refusals.filter((words) => !toldLater.includes(words))
  return {
    figures: [
      ['requests and SMTP conversations without an answer, or 5xx', unanswered.length + surprises.length],
      ['requests that wait for mail, without an answer', failures.length],
      ['mails told to come again (4xx)', toldLater.length],
    ],
    violations: [...unanswered, ...surprises, ...failures],
  }
}

/** HAProxy's view of nodes that it held to be ready. It retries nothing (`retries 0`), so it hides nothing. */
function judgeBalancer(servers: Record<string, string>[]): Ledger {
  const sum = (name: string) => servers.reduce((total, server) => total + Number(server[name] ?? 0), 0)
  const faults: [string, number][] = [
    ['connections refused by a node that said ready', sum('econ')],
    ['answers that a node broke off', sum('eresp')],
    ['answers 5xx', sum('hrsp_5xx')],
  ]
  const violations = faults.flatMap(([name, count]) => (count > 0 ? [`${name}: ${count}`] : []))
  return { figures: [['times that HAProxy saw a node go', sum('chkdown')], ...faults], violations }
}

async function startBalancer(scope: Scope, nodes: Cluster['nodes']): Promise<Balancer> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-haproxy-'))
  scope.after(() => rmSync(folder, { recursive: true, force: true }))
  const [http, smtp, socket] = [await freePort(), await freePort(), join(folder, 'socket')]
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, configuration(nodes, { http, smtp, socket }))
  const { servers } = await startHaproxy(scope, { file, socket })
  return { http: `http://127.0.0.1:${http}`, smtp: { host: '127.0.0.1', port: smtp }, servers }
}

function configuration(
  nodes: readonly Posthorn[],
  { http, smtp, socket }: { http: number; smtp: number; socket: string },
): string {
  const servers = (address: (node: Posthorn) => string) =>
    nodes.map((node, n) => `  server node${n + 1} ${address(node)} check port ${new URL(node.operator).port}`)
  return `global
  stats socket ${socket} mode 600
defaults
  timeout connect 5s
  timeout client 2m
  timeout server 2m
  timeout check 5s
  retries 0
  option httpchk GET /readyz
  http-check expect status 200
  default-server inter 500ms fall 2 rise 2
listen api
  mode http
  option forwardfor
  bind 127.0.0.1:${http}
${servers((node) => new URL(node.http).host).join('\n')}
listen mail
  mode tcp
  bind 127.0.0.1:${smtp}
${servers(({ smtp: { host, port } }) => `${host}:${port}`).join('\n')}
`
}
