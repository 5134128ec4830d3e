// The recipe of deploy/two-machines with its own files, on three machines: only addresses, paths and passwords differ.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
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
import { dirname, join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import pg from 'pg'
import { chooseOwner, type Owner } from '../../src/postgres/embedded/owner.ts'
import { ownProgram, runCommand } from '../support/command.ts'
import { DnsServer } from '../support/dns-server.ts'
import { type Haproxy, startHaproxy } from '../support/haproxy.ts'
import { type Pebble, startPebble } from '../support/pebble.ts'
import { type S3Server, startS3 } from '../support/s3.ts'
import { type Posthorn, startPosthorn } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { type Scope, until } from '../support/until.ts'
import { type Machine, startNetwork } from './net-namespace.ts'
import { Member, missingForPatroni, PatroniCluster } from './patroni.ts'

export const mailHost = 'mx.example.com'
const recipe = resolve(import.meta.dirname, '../../deploy/two-machines')
const names = ['a', 'b', 'c'] as const

/** A machine with a node and a balancer. */
export interface MailMachine extends Pick<Posthorn, 'cli' | 'http'> {
  machine: Machine
  node: Posthorn
  haproxy: Haproxy
}

export interface TwoMachines {
  /** The address that clients connect from. */
  here: string
  cluster: PatroniCluster
  a: MailMachine
  b: MailMachine
  sink: Sink
  s3: S3Server
  pebble: Pebble
  /** The first certificate of HAProxy, which names the addresses of the machines as well. */
  certificate: string
  /** The file with certificate and key that HAProxy reads. */
  pemFile: string
}

interface Ground {
  here: string
  machines: Machine[]
  folder: string
  owner: Owner
  s3Url: string
}

/** The reason why this machine cannot run the recipe; null if it can. */
export function missingForTwoMachines(): string | null {
  for (const program of ['haproxy', 'openssl', 'pebble'])
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0)
      return `it needs ${program}: apt-get install ${program}`
  return missingForPatroni()
}

/** Ends the last started first, because a node drains into its database. */
function endInReverse(scope: Scope): Scope {
  const endings: (() => void | Promise<void>)[] = []
  scope.after(async () => {
    const faults: unknown[] = []
    // The rest must end too: namespaces, processes, folders.
    for (const end of endings.toReversed()) await (async () => end())().catch((error) => faults.push(error))
    if (faults.length > 0) throw new AggregateError(faults)
  })
  return { after: (end) => void endings.push(end) }
}

/** Starts everything in the order of docs/two-machines.md. It ends with the scope. */
export async function startTwoMachines(whole: Scope): Promise<TwoMachines> {
  const scope = endInReverse(whole)
  const { here, machines } = startNetwork(scope, 3)
  // Three servers and three etcds write 300 MB, and wait for each flush.
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'posthorn-two-'))
  chmodSync(folder, 0o755)
  scope.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  const owner = (await chooseOwner(folder))!
  const s3 = await startS3(scope, { host: here })
  const ground = { here, machines, folder, owner, s3Url: s3.makeUrl() }
  const members = startDatabases(scope, ground)
  const certificate = writeSecrets(ground, s3)
  const dns = await DnsServer.start(zoneOf(ground), { host: here })
  scope.after(() => dns.close())
  const sink = await startSink(scope, { host: here })
  const pebble = await startPebble(scope, {
    dns: dns.address,
    httpPort: 80,
    host: here,
    listener: { certificate: join(folder, 'first.pem'), privateKey: join(folder, 'first.key') },
  })
  await makeDatabase(members)
  const trial = {
    POSTHORN_DNS: dns.address,
    POSTHORN_MX_PORT: String(sink.port),
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
    POSTHORN_RETRY_SCHEDULE: '1s,2s',
    POSTHORN_ACME_DIRECTORY: pebble.directory,
    NODE_EXTRA_CA_CERTS: join(folder, 'first.pem'),
  }
  const a = await startMailMachine(scope, ground, 'a', trial)
  const b = await startMailMachine(scope, ground, 'b', trial)
  const pemFile = join(folder, 'posthorn.pem')
  return { here, cluster: new PatroniCluster(members), a, b, sink, s3, pebble, certificate, pemFile }
}

/** A file of the recipe for one machine. */
function read({ here, machines, folder, s3Url }: Ground, file: string, name: string): string {
  const words: [string, string][] = [
    ...machines.map(({ there }, n): [string, string] => [`10.0.0.${11 + n}`, there]),
    ...machines.map(({ there }, n): [string, string] => [`192.0.2.${11 + n}`, there]),
    // The test makes the database and asks for the leader.
    ['    - local all all peer', `    - local all all peer\n    - host all all ${here}/32 scram-sha-256`],
    ['s3://posthorn/mail?endpoint=https://s3.example.com', s3Url],
    ['/var/lib/etcd/posthorn', join(folder, name, 'etcd')],
    ['/var/lib/postgresql/posthorn', join(folder, name, 'data')],
    ['/var/lib/postgresql/pgpass', join(folder, name, 'pgpass')],
    ['/var/run/postgresql', join(folder, name)],
    ['/etc/haproxy', folder],
    ['/run/haproxy', join(folder, name)],
    ['/etc/posthorn', folder],
  ]
  return words.reduce(
    (text, [committed, own]) => text.replaceAll(committed, own),
    readFileSync(join(recipe, file), 'utf8'),
  )
}

const environmentOf = (ground: Ground, file: string, name: string) =>
  parseEnv(read(ground, file, name)) as Record<string, string>

function startDatabases(scope: Scope, ground: Ground): Member[] {
  const { machines, folder, owner } = ground
  const members = machines.map((machine, n) => new Member(names[n]!, machine, folder, owner))
  const etcds = members.map((member) => startEtcd(ground, member))
  scope.after(async () => {
    await Promise.all(members.map((member) => member.end()))
    for (const etcd of etcds) etcd.kill('SIGKILL')
    await Promise.all(etcds.map((etcd) => (etcd.exitCode ?? etcd.signalCode) || once(etcd, 'exit')))
  })
  for (const member of members) {
    member.configureAs(
      read(ground, 'patroni.yml', member.name),
      environmentOf(ground, `${member.name}.env`, member.name),
    )
    member.start()
  }
  return members
}

function startEtcd(ground: Ground, { name, machine, folder }: Member): ChildProcess {
  const { uid, gid } = ground.owner
  const data = join(folder, 'etcd')
  mkdirSync(data, { mode: 0o700 })
  chownSync(data, uid, gid)
  const as = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups']
  const [program, ...words] = [...machine.enter, ...as, 'etcd']
  const env = {
    PATH: process.env['PATH'],
    ...environmentOf(ground, `${name}.env`, name),
    ETCD_LOG_LEVEL: 'error',
  }
  return spawn(program!, words, { cwd: '/', stdio: 'ignore', env })
}

/** The files of secrets, and HAProxy's first certificate, which is returned. */
function writeSecrets({ folder, machines, here }: Ground, { env }: S3Server): string {
  writeFileSync(join(folder, 'secret-key'), randomBytes(32).toString('hex'))
  const keys = [
    `aws_access_key_id=${env['AWS_ACCESS_KEY_ID']}`,
    `aws_secret_access_key=${env['AWS_SECRET_ACCESS_KEY']}`,
  ]
  writeFileSync(join(folder, 's3-credentials'), ['[default]', ...keys, ''].join('\n'))
  const alternatives = [...machines.map(({ there }) => there), here].map((ip) => `IP:${ip}`)
  const [key, certificate] = [join(folder, 'first.key'), join(folder, 'first.pem')]
  const words = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '30',
  ]
  const subject = ['-subj', `/CN=${mailHost}`, '-addext', `subjectAltName=${alternatives}`]
  execFileSync('openssl', [...words, ...subject, '-keyout', key, '-out', certificate], { stdio: 'ignore' })
  const pem = readFileSync(certificate, 'utf8')
  writeFileSync(join(folder, 'posthorn.pem'), pem + readFileSync(key, 'utf8'))
  return pem
}

/** Names that the recipe's page publishes, the domains of `load.ts`, and the sender's. */
function zoneOf({ here, machines: [a, b] }: Ground) {
  const far = [...Array.from({ length: 20 }, (_, n) => `far${n}.test`), 'sender.test']
  const both = { A: [a!.there, b!.there] }
  return {
    ...Object.fromEntries(far.map((name) => [name, { MX: [[10, 'mx.far.test']] as [number, string][] }])),
    'mx.far.test': { A: [here] },
    [mailHost]: both,
    'mta-sts.inbox.example.com': both,
  }
}

/** The statements of the page, at the first leader. */
async function makeDatabase(members: Member[]): Promise<void> {
  const leader = await until(
    'a leader',
    async () => {
      const are = await Promise.all(members.map((member) => member.has('primary')))
      return members[are.indexOf(true)]
    },
    { timeoutMs: 60_000, everyMs: 100 },
  ).catch((error) => {
    throw new Error(`${error}\n${members.map((member) => member.log()).join('\n---\n')}`)
  })
  // Patroni makes the superuser after it has the lock of the leader.
  const client = await until('the superuser', () => connectTo(leader), { everyMs: 100 })
  await client.query("create role posthorn login password 'POSTHORN-PASSWORD'")
  await client.query('create database posthorn owner posthorn')
  await client.end()
}

/** Null if the superuser does not exist yet. */
async function connectTo({ machine }: Member): Promise<pg.Client | null> {
  const client = new pg.Client({
    host: machine.there,
    user: 'postgres',
    password: 'SUPERUSER-PASSWORD',
    database: 'postgres',
  })
  try {
    await client.connect()
    return client
  } catch (error) {
    // SQLSTATE invalid_authorization_specification.
    if ((error as pg.DatabaseError).code === '28000') return null
    throw error
  }
}

async function startMailMachine(
  scope: Scope,
  ground: Ground,
  name: 'a' | 'b',
  trial: Record<string, string>,
): Promise<MailMachine> {
  const machine = ground.machines[names.indexOf(name)]!
  const own = Object.entries(environmentOf(ground, `${name}.env`, name))
  // The data folder is the test's.
  const ofNode = own.filter(([each]) => each.startsWith('POSTHORN_') && each !== 'POSTHORN_DATA_DIR')
  const env = { ...environmentOf(ground, 'posthorn.env', name), ...Object.fromEntries(ofNode), ...trial }
  const node = await startPosthorn(scope, { env, program: machine.wrap(ownProgram) })
  const file = join(ground.folder, name, 'haproxy.cfg')
  writeFileSync(file, read(ground, 'haproxy.cfg', name))
  const socket = join(ground.folder, name, 'admin.sock')
  const haproxy = await startHaproxy(scope, { file, socket, enter: machine.enter })
  return { machine, node, haproxy, http: node.http, cli: (words) => commandOf(node, words) }
}

/** Runs a command with the node's settings. Unlike `Posthorn.cli` it needs no process on that machine. */
async function commandOf<Answer>({ env, folder }: Posthorn, words: string[]): Promise<Answer> {
  const { NODE_EXTRA_CA_CERTS, ...settings } = env
  const { status, stdout, stderr } = await runCommand([...words, '--json'], settings, dirname(folder))
  if (status !== 0) throw new Error(`posthorn ${words.join(' ')} ended with ${status}: ${stderr || stdout}`)
  return JSON.parse(stdout)
}
