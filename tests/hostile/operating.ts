// Mistakes of an operator, and access by other accounts of the same machine.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import pg from 'pg'
import { freePort } from '../support/free-port.ts'
import { createCaller, type Posthorn, startPosthorn } from '../support/service.ts'
import { sendMail } from '../support/smtp-sender.ts'
import { type Scope, until } from '../support/until.ts'
import { type Attack, type Outcome, send, setStage, timeUntil } from './attack.ts'

async function otherKey(scope: Scope): Promise<Outcome> {
  const first = await startPosthorn(scope)
  const { host, port, user, database, connectionString } = first.database() as Record<string, string>
  const url =
    connectionString ??
    `postgres://${user}@localhost/${database}?${new URLSearchParams({ host: host!, port: String(port) })}`
  const second = startPosthorn(scope, { env: { POSTHORN_DATABASE_URL: url }, roles: 'api,webhooks' })
  const refusal = await second.then(
    () => null,
    (error: Error) => error.message,
  )
  if (refusal === null) return { now: 'it starts', held: false }
  const lines = refusal.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('posthorn ended'))
  const words = lines.filter((line) => !line.startsWith('{'))
  return {
    now: `it stops: ${words.at(-1)?.slice(0, 160)}`,
    held: /secret.key/i.test(refusal) && !/ at .*\.ts:\d+/.test(refusal),
  }
}

/** Whether the account reaches the database of a service that root started, through its postmaster's folder. */
async function otherAccount(scope: Scope): Promise<Outcome> {
  if (process.getuid?.() !== 0) return { now: 'not tried: this needs root', held: false }
  const posthorn = await startPosthorn(scope)
  const reached = ['postgres', 'nobody'].filter((account) => asks(posthorn, account))
  return {
    now: reached.length > 0 ? `superuser: ${reached.join(', ')}` : 'neither gets in',
    held: reached.length === 0,
  }
}

function asks({ folder }: Posthorn, account: string): boolean {
  const file = join(folder, globSync('**/postmaster.pid', { cwd: folder })[0]!)
  const [pid, , , port, socket] = readFileSync(file, 'utf8').split('\n')
  const name = socket!.startsWith('/') ? socket!.slice(dirname(file).length + 1) : socket!
  const host = socket!.startsWith('/') ? `/proc/${pid}/cwd/../${name}` : `/proc/${pid}/cwd/${name}`
  const candidates = [host, `/proc/${pid}/cwd/../socket`, resolve(dirname(file), socket!)]
  return candidates.some((where) => {
    const psql = [
      'psql',
      '-w',
      '-h',
      where,
      '-p',
      port!,
      '-U',
      'posthorn',
      '-d',
      'posthorn',
      '-c',
      'select 1',
    ]
    return spawnSync('runuser', ['-u', account, '--', ...psql], { cwd: '/' }).status === 0
  })
}

async function deletion(scope: Scope): Promise<Outcome> {
  const { victim: api, healthy } = await setStage(scope)
  const inbox = await api.want<{ id: string; address: string }>('/v1/inboxes', {
    method: 'POST',
    status: 201,
    body: { localPart: 'grace', displayName: 'Grace Secretname' },
  })
  const sent = { subject: 'Diagnosis unknown', text: 'x', metadata: { patient: 'number-4711' } }
  const { submission } = await send(api, inbox, ['a@healthy.test'], sent)
  await until('it to arrive', () => healthy.copies.length === 1)
  await api.want(`/v1/inboxes/${inbox.id}`, { method: 'DELETE', status: 204 })
  const traces = ['Secretname', 'Diagnosis', 'number-4711']
  const left = async () => {
    const text = JSON.stringify((await api.call(`/v1/submissions/${submission.id}`)).body)
    return traces.filter((trace) => text.includes(trace))
  }
  await until('what is left to go', async () => (await left()).length === 0, { timeoutMs: 5000 }).catch(
    () => {},
  )
  const found = await left()
  return {
    now: found.length > 0 ? `still told: ${found.join(', ')}` : 'nothing of them is told',
    held: found.length === 0,
  }
}

async function passwordInErrors(scope: Scope): Promise<Outcome> {
  const secret = 'pa55w0rd'
  const wrong: Record<string, string>[] = [
    { POSTHORN_DATABASE_URL: `postgres://u:${secret}#x/w@127.0.0.1/x` },
    { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: `smtp://user:${secret}%25%@relay.test` },
    { POSTHORN_DELIVERY: 'relay', POSTHORN_RELAY_URL: `smtp://user:${secret}/w0rd@relay.test` },
  ]
  const words: string[] = []
  for (const env of wrong) {
    const error = await startPosthorn(scope, { env }).then(
      () => 'it started',
      (reason: Error) => reason.message,
    )
    if (error === 'it started') words.push('taken')
    else if (error.includes(secret)) words.push('password shown')
    else if (/ at .*:\d+:\d+/.test(error)) words.push('stack')
  }
  return { now: words.join(', ') || 'one line each, no password in it', held: words.length === 0 }
}

const programs = '/usr/lib/postgresql/15/bin'

/** A PostgreSQL of Debian's in a folder of its own, started and killed at will. */
class Server {
  readonly #folder: string
  readonly #port: number
  readonly #owner: { uid?: number; gid?: number }
  #child: ChildProcess | null = null

  constructor(folder: string, port: number) {
    this.#folder = folder
    this.#port = port
    // PostgreSQL refuses to run as root.
    this.#owner = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
    if (this.#owner.uid) chownSync(folder, this.#owner.uid, this.#owner.gid!)
    const args = ['-D', `${folder}/data`, '-U', 'posthorn', '-E', 'UTF8', '--locale=C', '-A', 'trust']
    const { status, stderr } = spawnSync(`${programs}/initdb`, args, { ...this.#owner, cwd: folder })
    if (status !== 0) throw new Error(`initdb: ${stderr}`)
  }

  get url(): string {
    return `postgres://posthorn@127.0.0.1:${this.#port}/postgres`
  }

  async start(settings: string[]): Promise<void> {
    const words = [
      'listen_addresses=127.0.0.1',
      `port=${this.#port}`,
      `unix_socket_directories=${this.#folder}`,
    ]
    const args = ['-D', `${this.#folder}/data`, ...[...words, ...settings].flatMap((word) => ['-c', word])]
    this.#child = spawn(`${programs}/postgres`, args, { ...this.#owner, cwd: this.#folder, stdio: 'ignore' })
    await until('PostgreSQL to answer', async () => {
      const client = new pg.Client({ connectionString: this.url })
      return await client.connect().then(
        () => client.end().then(() => true),
        () => false,
      )
    })
  }

  /** Creates another database. Returns its URL. */
  async createDatabase(): Promise<string> {
    const client = new pg.Client({ connectionString: this.url })
    await client.connect()
    await client.query('create database further').finally(() => client.end())
    return this.url.replace(/postgres$/, 'further')
  }

  async end(signal: 'SIGKILL' | 'SIGINT'): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    child.kill(signal)
    await once(child, 'exit')
  }
}

/** Whether it starts on a server without fsync, and which acknowledged mails survive if commits do not wait. */
async function unsafeDatabase(scope: Scope): Promise<Outcome> {
  if (!existsSync(programs)) return { now: 'not tried: PostgreSQL 15 of Debian is missing', held: false }
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-hostile-'))
  const server = new Server(folder, await freePort())
  scope.after(async () => {
    await server.end('SIGINT')
    rmSync(folder, { recursive: true, force: true })
  })
  await server.start(['fsync=off'])
  const refused = await startPosthorn(scope, { env: { POSTHORN_DATABASE_URL: server.url } }).then(
    () => false,
    (error: Error) => /fsync/.test(error.message),
  )
  await server.end('SIGINT')
  const careless = ['synchronous_commit=off', 'wal_writer_delay=10s']
  await server.start(careless)
  const posthorn = await startPosthorn(scope, {
    env: { POSTHORN_DATABASE_URL: await server.createDatabase(), POSTHORN_MANAGED_DOMAIN: 'inbox.test' },
  })
  const { api } = await createCaller(posthorn)
  const inbox = await api.createInbox()
  const raw = Buffer.from('From: a@far.test\r\nSubject: x\r\n\r\nHello.\r\n')
  for (let n = 0; n < 5; n++) {
    const { outcome } = await sendMail(posthorn.smtp, { from: 'a@far.test', to: inbox.address, raw })
    if (outcome !== 'accepted') throw new Error(`a mail was ${outcome}`)
  }
  await server.end('SIGKILL')
  await posthorn.kill9()
  await server.start(careless)
  await posthorn.start()
  const count = async () => (await api.exported(inbox.id).catch(() => [])).length
  await timeUntil(async () => (await count()) === 5, 8_000)
  const left = await count()
  return {
    now: `without fsync it ${refused ? 'does not start' : 'starts'}; ${left} of 5 there after the kill`,
    held: refused && left === 5,
  }
}

export const operatingAttacks: Attack[] = [
  {
    name: 'a second node with a secret key of its own',
    before: 'it starts; bounces of the first are refused there',
    run: otherKey,
  },
  {
    name: "another account of the machine asks for root's database",
    before: 'superuser: postgres',
    run: otherAccount,
  },
  {
    name: 'an inbox with a name, a subject and metadata is deleted',
    before: 'all of them still told',
    run: deletion,
  },
  {
    name: 'settings that are wrong and hold a password',
    before: 'the password shown in two, a stack in one',
    run: passwordInErrors,
  },
  {
    name: 'a PostgreSQL that does not flush its commits, killed behind five 250s',
    before: 'it starts and says nothing; 0 of 5 there after the kill',
    run: unsafeDatabase,
  },
]
