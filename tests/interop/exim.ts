// Runs Debian's Exim from the cache folder that install-exim.sh fills, with its own configuration.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { inherited } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { type Neighbour, readMaildir } from './neighbour.ts'

/** Returns the folder of Exim's files, or the reason why there is none. */
export function findExim(): { folder: string } | { missing: string } {
  const script = join(import.meta.dirname, 'install-exim.sh')
  try {
    const folder = execFileSync('/bin/sh', [script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    return { folder: folder.trim() }
  } catch {
    // There is no apt or network, or this is not Debian.
    return { missing: 'Exim could not be fetched (tests/interop/install-exim.sh)' }
  }
}

/** Starts Exim. It keeps mail for `exim.test` in a maildir and relays all other mail to `relay` at once. */
export async function startExim(
  scope: Scope,
  folder: string,
  relay: { host: string; port: number },
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
  write('exim.conf', configuration({ home, binary, port, relay, uid, gid }))
  const child = spawn(binary, ['-C', join(home, 'exim.conf'), '-bdf'], {
    cwd: home,
    env: { ...inherited(), ...libraries(folder, home) },
    stdio: 'ignore',
  })
  scope.after(async () => {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit')
    rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })
  await until('Exim to listen', () => child.exitCode !== null || canConnect(port))
  if (child.exitCode !== null) throw new Error(`exim ended with ${child.exitCode}`)
  return {
    host: '127.0.0.1',
    port,
    kept: () => readMaildir(join(home, 'box')),
    logFile: join(home, 'log/mainlog'),
  }
}

function libraries(folder: string, home: string): Record<string, string> {
  const place = join(folder, 'usr/lib', process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu')
  return {
    LD_LIBRARY_PATH: place,
    LD_PRELOAD: join(place, 'libnss_wrapper.so'),
    NSS_WRAPPER_PASSWD: join(home, 'passwd'),
    NSS_WRAPPER_GROUP: join(home, 'group'),
  }
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true))
    socket.on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

interface Place {
  home: string
  binary: string
  port: number
  relay: { host: string; port: number }
  uid: number
  gid: number
}

function configuration({ home, binary, port, relay, uid, gid }: Place): string {
  return `primary_hostname = exim.test
exim_path = ${binary}
spool_directory = ${home}/spool
log_file_path = ${home}/log/%slog
pid_file_path = ${home}/spool/exim.pid
daemon_smtp_ports = ${port}
local_interfaces = 127.0.0.1
keep_environment = ^LD_ : ^NSS_WRAPPER_
deliver_drop_privilege
smtputf8_advertise_hosts = *
acl_smtp_rcpt = take
acl_smtp_data = accept
tls_advertise_hosts =
begin acl
take:
  accept hosts = 127.0.0.1
begin routers
here:
  driver = accept
  domains = exim.test
  transport = box
away:
  driver = manualroute
  route_list = * ${relay.host}::${relay.port}
  self = send
  transport = smtp
begin transports
box:
  driver = appendfile
  maildir_format
  directory = ${home}/box
  create_directory
  user = ${uid}
  group = ${gid}
smtp:
  driver = smtp
  allow_localhost
  tls_verify_hosts =
  tls_try_verify_hosts =
begin retry
* * F,1h,1s
`
}
