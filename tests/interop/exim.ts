// Runs Debian's Exim from its unpacked files, with its own configuration.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { inherited } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { isListening, type Neighbour, readMaildir } from './neighbour.ts'
import { librariesIn, type Unpacked, unpack } from './unpack.ts'

/** Returns the folder of Exim's files, or the reason why there is none. */
export const findExim = (): Unpacked => unpack('exim')

/** Changes of the configuration. */
export interface EximOptions {
  /** More listeners, as `[address]:port`. */
  listeners?: string[]
  /** The main settings of TLS as a server. Default: no TLS. */
  tls?: string
  /** How mail that Exim does not keep leaves: its routers, transports and authenticators. Default: to `relay`. */
  away?: Away
}

export interface Away {
  routers: string
  transports: string
  authenticators: string
}

/** Starts Exim. It keeps mail for `exim.test` in a maildir and relays all other mail to `relay` at once. */
export async function startExim(
  scope: Scope,
  folder: string,
  relay: { host: string; port: number },
  { listeners = [], tls = 'tls_advertise_hosts =', away = relayTo(relay) }: EximOptions = {},
): Promise<Neighbour> {
  const home = mkdtempSync(join(tmpdir(), 'posthorn-exim-'))
  chmodSync(home, 0o755)
  const port = await freePort()
  const isRoot = process.getuid?.() === 0
  const [uid, gid] = isRoot ? [65534, 65534] : [process.getuid!(), process.getgid!()]
  for (const name of ['spool', 'log', 'box']) {
    mkdirSync(join(home, name))
    chownSync(join(home, name), uid, gid)
  }
  const binary = join(folder, 'usr/sbin/exim4')
  const write = (name: string, text: string) => writeFileSync(join(home, name), text, { mode: 0o644 })
  write(
    'passwd',
    `${readFileSync('/etc/passwd', 'utf8')}Debian-exim:x:${uid}:${gid}::/nonexistent:/bin/false\n`,
  )
  write('group', `${readFileSync('/etc/group', 'utf8')}Debian-exim:x:${gid}:\n`)
  const interfaces = ['127.0.0.1', ...listeners].join(' ; ')
  write('exim.conf', configuration({ home, binary, port, interfaces, tls, away, uid, gid }))
  const child = spawn(binary, ['-C', join(home, 'exim.conf'), '-bdf'], {
    cwd: home,
    env: { ...inherited(), ...libraries(folder, home) },
    stdio: 'ignore',
  })
  scope.after(async () => {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit')
    rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })
  await until('Exim to listen', () => child.exitCode !== null || isListening(port))
  if (child.exitCode !== null) throw new Error(`exim ended with ${child.exitCode}`)
  return {
    host: '127.0.0.1',
    port,
    kept: () => readMaildir(join(home, 'box')),
    logFile: join(home, 'log/mainlog'),
  }
}

function libraries(folder: string, home: string): Record<string, string> {
  const libraryFolder = librariesIn(folder)
  return {
    LD_LIBRARY_PATH: libraryFolder,
    LD_PRELOAD: join(libraryFolder, 'libnss_wrapper.so'),
    NSS_WRAPPER_PASSWD: join(home, 'passwd'),
    NSS_WRAPPER_GROUP: join(home, 'group'),
  }
}

function relayTo({ host, port }: { host: string; port: number }): Away {
  return {
    routers: `away:
  driver = manualroute
  route_list = * ${host}::${port}
  self = send
  transport = smtp
`,
    transports: `smtp:
  driver = smtp
  allow_localhost
  tls_verify_hosts =
  tls_try_verify_hosts =
`,
    authenticators: '',
  }
}

interface Setup {
  home: string
  binary: string
  port: number
  interfaces: string
  tls: string
  away: Away
  uid: number
  gid: number
}

function configuration({ home, binary, port, interfaces, tls, away, uid, gid }: Setup): string {
  return `primary_hostname = exim.test
exim_path = ${binary}
spool_directory = ${home}/spool
log_file_path = ${home}/log/%slog
pid_file_path = ${home}/spool/exim.pid
daemon_smtp_ports = ${port}
local_interfaces = <; ${interfaces}
keep_environment = ^LD_ : ^NSS_WRAPPER_
deliver_drop_privilege
smtputf8_advertise_hosts = *
acl_smtp_rcpt = take
acl_smtp_data = accept
${tls}
begin acl
take:
  accept hosts = 127.0.0.1
begin routers
here:
  driver = accept
  domains = exim.test
  transport = box
${away.routers}begin transports
box:
  driver = appendfile
  maildir_format
  directory = ${home}/box
  create_directory
  user = ${uid}
  group = ${gid}
${away.transports}begin retry
* * F,1h,1s
begin authenticators
${away.authenticators}`
}
