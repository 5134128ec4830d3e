// Runs Debian's Postfix with its own configuration, queue and maildir in a temporary folder, on one SMTP port.
import { accessSync, chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '../support/command.ts'
import { freePort } from '../support/free-port.ts'
import { inherited } from '../support/service.ts'
import type { Scope } from '../support/until.ts'
import { type Neighbour, readMaildir } from './neighbour.ts'

/** Returns why Postfix cannot run here, or null. */
export function postfixMissing(): string | null {
  if (process.getuid?.() !== 0) return 'Postfix starts only as root'
  try {
    accessSync('/usr/sbin/postfix')
    return null
  } catch {
    // Not installed.
    return 'Postfix is not installed (apt-get install postfix)'
  }
}

/**
 * Starts Postfix. It keeps mail for `postfix.test` in a maildir and relays all other mail to `relay`. `settings` are more
 * lines of its main configuration, `services` of its master configuration.
 */
export async function startPostfix(
  scope: Scope,
  relay: { host: string; port: number },
  { settings = '', services = '' }: { settings?: string; services?: string } = {},
): Promise<Neighbour> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-postfix-'))
  chmodSync(folder, 0o755)
  const port = await freePort()
  for (const name of ['config', 'queue', 'state', 'mail']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'config/main.cf'), mainConfiguration(folder, relay) + settings)
  writeFileSync(join(folder, 'config/master.cf'), masterConfiguration(port) + services)
  await run('/bin/chown', ['postfix', join(folder, 'state')], inherited(), folder)
  await run('/bin/chown', ['nobody', join(folder, 'mail')], inherited(), folder)
  const postfix = (verb: string) =>
    run('/usr/sbin/postfix', ['-c', join(folder, 'config'), verb], inherited(), folder)
  const { status, stderr } = await postfix('start')
  scope.after(async () => {
    await postfix('stop')
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })
  if (status !== 0) throw new Error(`postfix start: ${status} ${stderr}`)
  return {
    host: '127.0.0.1',
    port,
    kept: () => readMaildir(join(folder, 'mail/box')),
    logFile: join(folder, 'state/log'),
  }
}

function mainConfiguration(folder: string, { host, port }: { host: string; port: number }): string {
  return `compatibility_level = 3.6
queue_directory = ${folder}/queue
data_directory = ${folder}/state
maillog_file = ${folder}/state/log
maillog_file_prefixes = ${folder}
myhostname = postfix.test
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
disable_dns_lookups = yes
relayhost = [${host}]:${port}
smtp_tls_security_level = may
virtual_mailbox_domains = postfix.test
virtual_mailbox_base = ${folder}/mail
virtual_mailbox_maps = static:box/
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
local_recipient_maps =
alias_maps =
minimal_backoff_time = 1s
queue_run_delay = 1s
`
}

function masterConfiguration(port: number): string {
  return `127.0.0.1:${port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 1 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
smtp unix - - n - - smtp
error unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
`
}
