// Postfix as a peer: a separate instance with Debian's programs and default limits that receives or relays.
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Scope, until } from '../../tests/support/until.ts'
import { freePort, runChild, startChild, temporaryFolder, untilReady } from '../children.ts'
import { isListening } from '../load/smtp.ts'
import { treeOf } from '../usage.ts'
import type { Milters } from './milters.ts'
import type { Wrap } from './resolver.ts'

export interface Postfix {
  port: number
  /** The pids of all running programs, milters included. */
  pids(): number[]
  /** Resolves when the recipient's maildir holds this many messages. */
  reach(messages: number): Promise<void>
  /** Returns one message of the maildir. */
  read(): string
  /** Empties the maildir. */
  clear(): void
  /** Resolves when no message is left in any queue. */
  idle(): Promise<void>
}

const nobody = 65_534

interface PostfixOptions {
  /** Relays everything to a port, or to the mail servers of its domains. */
  onward?: number | 'mx'
  /** The milters that verify or sign mail. */
  milters?: Milters
  /** Starts Postfix so that it asks our DNS. */
  wrap?: Wrap
}

/** Starts an instance that files mail for bench.test in a maildir, or relays it. */
export async function startPostfix(scope: Scope, options: PostfixOptions = {}): Promise<Postfix> {
  if (!existsSync('/usr/sbin/postfix')) throw new Error('missing: run bench/peers/install.sh')
  if (process.getuid?.() !== 0) throw new Error('missing: Postfix starts only as root')
  const folder = temporaryFolder(scope, 'postfix')
  const port = await freePort()
  const config = await configure(folder, port, options)
  const { milters, wrap = (command, args) => [command, args] } = options
  const child = startChild(scope, folder, ...wrap('/usr/sbin/postfix', ['-c', config, 'start-fg']), {
    stop: async () => void (await runChild('/usr/sbin/postfix', ['-c', config, 'stop'])),
  })
  await untilReady(child, 'Postfix listens', () => isListening(port))
  const maildir = join(folder, 'mail/u/new')
  return {
    port,
    pids: () => [...treeOf(child.pid), ...(milters?.pids() ?? [])],
    read: () => readFileSync(join(maildir, readdirSync(maildir)[0]!), 'latin1'),
    reach: async (messages) => {
      const reached = () => existsSync(maildir) && readdirSync(maildir).length >= messages
      await until(`Postfix files ${messages} messages`, reached, { timeoutMs: 120_000, everyMs: 25 })
    },
    clear: () => {
      rmSync(maildir, { recursive: true, force: true })
      mkdirSync(maildir)
      chownSync(maildir, nobody, nobody)
    },
    idle: async () =>
      void (await until('Postfix empties its queues', () => isEmpty(folder), { timeoutMs: 120_000 })),
  }
}

/** Returns the version of the installed programs. They need no configuration for that. */
export async function postfixVersion(): Promise<string> {
  return (await runChild('/usr/sbin/postconf', ['-dh', 'mail_version'])).trim()
}

async function configure(folder: string, port: number, { onward, milters }: PostfixOptions): Promise<string> {
  const config = join(folder, 'config')
  for (const name of ['config', 'queue', 'state', 'mail']) mkdirSync(join(folder, name), { mode: 0o755 })
  chownSync(join(folder, 'state'), Number(await runChild('id', ['-u', 'postfix'])), 0)
  chownSync(join(folder, 'mail'), nobody, nobody)
  const main = [
    'compatibility_level = 3.6',
    `queue_directory = ${folder}/queue`,
    `data_directory = ${folder}/state`,
    'command_directory = /usr/sbin',
    'daemon_directory = /usr/lib/postfix/sbin',
    'myhostname = mx.bench.invalid',
    'mydestination =',
    'inet_interfaces = 127.0.0.1',
    'inet_protocols = ipv4',
    'mynetworks = 127.0.0.0/8',
    'alias_maps =',
    'alias_database =',
    ...destinationOf(folder, onward),
    ...(milters?.main ?? []),
  ]
  writeFileSync(join(config, 'main.cf'), `${main.join('\n')}\n`)
  writeFileSync(join(config, 'master.cf'), masterTable(port, milters?.master ?? []))
  return config
}

function destinationOf(folder: string, onward: PostfixOptions['onward']): string[] {
  if (onward === 'mx') return []
  if (onward) return [`relayhost = [127.0.0.1]:${onward}`, 'disable_dns_lookups = yes']
  return [
    'virtual_mailbox_domains = bench.test',
    'virtual_mailbox_maps = static:u/',
    `virtual_mailbox_base = ${folder}/mail`,
    `virtual_uid_maps = static:${nobody}`,
    `virtual_gid_maps = static:${nobody}`,
  ]
}

/** Returns Debian's table of programs, listening on our port, without its chroot. */
function masterTable(port: number, more: readonly string[]): string {
  const lines = readFileSync('/usr/share/postfix/master.cf.dist', 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !/^smtp +inet/.test(line))
    .map((line) => line.replace(/^(\S+ +\S+ +\S+ +\S+ +)y /, '$1n '))
  return [`127.0.0.1:${port} inet n - n - - smtpd`, ...lines, ...more, ''].join('\n')
}

function isEmpty(folder: string): boolean {
  return ['maildrop', 'incoming', 'active', 'deferred'].every(
    (queue) => filesBelow(join(folder, 'queue', queue)) === 0,
  )
}

function filesBelow(folder: string): number {
  let count = 0
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    count += entry.isDirectory() ? filesBelow(join(folder, entry.name)) : 1
  }
  return count
}
