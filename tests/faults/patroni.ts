// A cluster of Patroni: three PostgreSQL of Debian on machines of their own, and one etcd on this machine.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chooseOwner, type Owner } from '../../src/postgres/embedded/owner.ts'
import { freePort } from '../support/free-port.ts'
import { type Scope, until } from '../support/until.ts'
import { type Machine, missingForNetworks, startNetwork } from './net-namespace.ts'

/** Seconds. A leader that is lost keeps its role for up to `ttl`. */
export interface Pace {
  ttl: number
  loop_wait: number
  retry_timeout: number
}

const bin = '/usr/lib/postgresql/15/bin'
const databasePort = 5432
const restPort = 8008
/** How often the servers are asked for their role. */
const askEveryMs = 100

/** The reason why this machine cannot run the cluster; null if it can. */
export function missingForPatroni(): string | null {
  for (const program of ['patroni', 'etcd'])
    if (spawnSync(program, ['--version']).status !== 0)
      return `it needs Patroni and etcd: apt-get install patroni etcd-server`
  if (!existsSync(`${bin}/postgres`)) return 'it needs PostgreSQL 15: apt-get install postgresql-15'
  return missingForNetworks()
}

/** A server of the cluster: Patroni, and the PostgreSQL that it runs. */
export class Member {
  readonly name: string
  readonly machine: Machine
  readonly #folder: string
  readonly #owner: Owner
  #env: Record<string, string> = {}
  #child: ChildProcess | null = null

  constructor(name: string, machine: Machine, folder: string, owner: Owner) {
    this.name = name
    this.machine = machine
    this.#folder = join(folder, name)
    this.#owner = owner
    mkdirSync(this.#folder, { mode: 0o700 })
    chownSync(this.#folder, owner.uid, owner.gid)
  }

  get address(): string {
    return `${this.machine.there}:${databasePort}`
  }

  /** The folder of its files, its data among them in `data`. */
  get folder(): string {
    return this.#folder
  }

  /** Sets the text of Patroni's file, and variables that override it. */
  configureAs(file: string, env: Record<string, string> = {}): void {
    writeFileSync(join(this.#folder, 'patroni.yml'), file)
    this.#env = env
  }

  configure(etcd: string, pace: Pace): void {
    const { there } = this.machine
    const rest = `${there}:${restPort}`
    const trusted = [
      'local all all trust',
      'host all all samenet trust',
      'host replication all samenet trust',
    ]
    this.configureAs(
      // YAML reads JSON.
      JSON.stringify({
        scope: 'posthorn',
        name: this.name,
        restapi: { listen: rest, connect_address: rest },
        // Patroni 3.0.2 caches what it reads by etcd's API 3, and the cache may stay stale after a machine was cut off.
        etcd: { hosts: [etcd] },
        bootstrap: {
          dcs: {
            ...pace,
            maximum_lag_on_failover: 1 << 20,
            synchronous_mode: true,
            postgresql: { use_pg_rewind: true },
          },
          initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
        },
        postgresql: {
          listen: this.address,
          connect_address: this.address,
          data_dir: join(this.#folder, 'data'),
          bin_dir: bin,
          pgpass: join(this.#folder, 'pgpass'),
          parameters: { unix_socket_directories: this.#folder, shared_buffers: '64MB' },
          pg_hba: trusted,
          authentication: {
            superuser: { username: 'posthorn', password: 'horn' },
            replication: { username: 'replicator', password: 'horn' },
          },
        },
      }),
    )
  }

  start(): void {
    const { uid, gid } = this.#owner
    const as = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
    const [program, ...words] = [...this.machine.enter, ...as, 'patroni', join(this.#folder, 'patroni.yml')]
    const log = join(this.#folder, 'log')
    this.#child = spawn('sh', ['-c', `exec "$@" >>'${log}' 2>&1`, 'sh', program!, ...words], {
      cwd: '/',
      stdio: 'ignore',
      env: { ...process.env, ...this.#env },
    })
  }

  /** Ends Patroni and PostgreSQL, wherever they are in their work. */
  async end(): Promise<void> {
    if (!this.#child) return
    this.#child.kill('SIGKILL')
    const pids = this.#processes()
    // PostgreSQL removes its shared memory, without a checkpoint.
    this.signal('SIGQUIT')
    this.signal('SIGCONT')
    const areGone = () => !pids.some((pid) => existsSync(`/proc/${pid}`))
    await until('PostgreSQL to end', areGone, { timeoutMs: 5_000 }).catch(() => this.signal('SIGKILL'))
  }

  /** Signals Patroni, the postmaster and its children. */
  signal(signal: NodeJS.Signals): void {
    for (const pid of this.#processes())
      try {
        process.kill(pid, signal)
      } catch {
        // it has ended: backends come and go
      }
  }

  #processes(): number[] {
    const isRunning = this.#child?.exitCode === null && this.#child.signalCode === null
    const found = isRunning ? [this.#child!.pid!] : []
    const file = join(this.#folder, 'data/postmaster.pid')
    const postmaster = existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n', 1)[0]) : 0
    const children = `/proc/${postmaster}/task/${postmaster}/children`
    if (postmaster === 0 || !existsSync(children)) return found
    return [...found, postmaster, ...readFileSync(children, 'utf8').split(' ').filter(Boolean).map(Number)]
  }

  /** Whether Patroni answers that this server has the role, within half a second. */
  async has(role: 'primary' | 'replica' | 'sync'): Promise<boolean> {
    const url = `http://${this.machine.there}:${restPort}/${role}`
    const answer = await fetch(url, { signal: AbortSignal.timeout(500) }).catch(() => null)
    await answer?.body?.cancel()
    return answer?.status === 200
  }

  /** Asks Patroni to hand the role of the leader to a synchronous standby. Resolves with its answer. */
  async switchOver(): Promise<string> {
    const url = `http://${this.machine.there}:${restPort}/switchover`
    const answer = await fetch(url, { method: 'POST', body: JSON.stringify({ leader: this.name }) })
    return `${answer.status} ${await answer.text()}`
  }

  log(): string {
    return readFileSync(join(this.#folder, 'log'), 'utf8').split('\n').slice(-15).join('\n')
  }
}

export class PatroniCluster {
  readonly members: readonly Member[]

  constructor(members: Member[]) {
    this.members = members
  }

  /** Resolves once the cluster has a leader, a synchronous standby, and another standby. Ends with the scope. */
  static async start(scope: Scope, pace: Pace): Promise<PatroniCluster> {
    const { here, machines } = startNetwork(scope, 3)
    const folder = mkdtempSync(join(tmpdir(), 'posthorn-patroni-'))
    chmodSync(folder, 0o755)
    const owner = await chooseOwner(folder)
    if (!owner) throw new Error('Patroni is started by root, under another account')
    const etcd = await startEtcd(scope, { folder, here, owner })
    const members = machines.map((machine, n) => new Member(`server${n + 1}`, machine, folder, owner))
    scope.after(async () => {
      await Promise.all(members.map((member) => member.end()))
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    })
    for (const member of members) {
      member.configure(etcd, pace)
      member.start()
    }
    const cluster = new PatroniCluster(members)
    await cluster.untilWhole()
    return cluster
  }

  get url(): string {
    const hosts = this.members.map(({ address }) => address)
    return `postgres://posthorn:horn@${hosts}/postgres?target_session_attrs=read-write`
  }

  /** Waits for a leader with two standbys, of which one is synchronous. Returns the leader. */
  async untilWhole(): Promise<Member> {
    const isWhole = async () => {
      const count = async (role: 'primary' | 'replica' | 'sync') =>
        (await Promise.all(this.members.map((member) => member.has(role)))).filter(Boolean).length
      return (await count('primary')) === 1 && (await count('replica')) === 2 && (await count('sync')) === 1
    }
    await until('a leader with two standbys', isWhole, { timeoutMs: 90_000, everyMs: 200 }).catch((error) => {
      throw new Error(`${error}\n${this.members.map((member) => member.log()).join('\n---\n')}`)
    })
    return (await this.#leader(this.members))!
  }

  /** Waits until Patroni has promoted another server. */
  async untilPromoted(former: Member): Promise<Member> {
    const others = this.members.filter((member) => member !== former)
    return await until('another leader', () => this.#leader(others), {
      timeoutMs: 60_000,
      everyMs: askEveryMs,
    })
  }

  async #leader(members: readonly Member[]): Promise<Member | null> {
    const are = await Promise.all(members.map((member) => member.has('primary')))
    return members[are.indexOf(true)] ?? null
  }
}

/** Returns the address of etcd's clients. */
async function startEtcd(
  scope: Scope,
  { folder, here, owner }: { folder: string; here: string; owner: Owner },
): Promise<string> {
  const [clients, peers] = [`http://${here}:${await freePort()}`, `http://127.0.0.1:${await freePort()}`]
  const data = join(folder, 'etcd')
  mkdirSync(data, { mode: 0o700 })
  chownSync(data, owner.uid, owner.gid)
  const words = [
    ...['--data-dir', data, '--listen-client-urls', clients, '--advertise-client-urls', clients],
    ...['--listen-peer-urls', peers, '--initial-advertise-peer-urls', peers],
    ...['--initial-cluster', `default=${peers}`, '--logger', 'zap', '--log-level', 'error'],
    '--enable-v2',
  ]
  const child = spawn('etcd', words, {
    ...owner,
    cwd: '/',
    stdio: 'ignore',
    env: { PATH: process.env['PATH'] },
  })
  scope.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  await until('etcd to answer', async () => (await fetch(`${clients}/health`).catch(() => null))?.ok)
  return clients.slice('http://'.length)
}
