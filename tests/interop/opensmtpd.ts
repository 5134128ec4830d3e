// Runs Debian's OpenSMTPD from its unpacked files, in a mount namespace that has its users and its spool.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inherited } from '../support/service.ts'
import { type Scope, until } from '../support/until.ts'
import { isListening } from './neighbour.ts'
import type { Stage } from './receivers.ts'
import { librariesIn } from './unpack.ts'

/** The program knows only these paths, and two users. */
const script = `home=$1 folder=$2
for name in passwd group resolv.conf; do mount --bind "$home/$name" "/etc/$name"; done
for path in /var/spool /var/lib /run; do mount -t tmpfs none "$path"; done
mkdir -m 711 /var/spool/smtpd
mkdir -p /var/lib/opensmtpd/empty
exec "$folder/usr/sbin/smtpd" -d -f "$home/smtpd.conf"`

/** Starts it at both addresses of the stage. It relays all mail. Needs root. */
export async function startOpensmtpd(
  scope: Scope,
  folder: string,
  hosts: { plain: string; secure: string },
  { port, identity, onward }: Stage,
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'posthorn-opensmtpd-'))
  const write = (name: string, text: string) => writeFileSync(join(home, name), text, { mode: 0o644 })
  const users = ['opensmtpd', 'opensmtpq'].map((name, index) => ({ name, id: 65_533 - index }))
  const passwd = users.map(({ name, id }) => `${name}:x:${id}:${id}::/nonexistent:/bin/false\n`)
  write('passwd', readFileSync('/etc/passwd', 'utf8') + passwd.join(''))
  const groups = users.map(({ name, id }) => `${name}:x:${id}:\n`)
  write('group', readFileSync('/etc/group', 'utf8') + groups.join(''))
  // No resolver listens there, so the name of a client is not found at once.
  write('resolv.conf', 'nameserver 127.0.0.98\n')
  writeFileSync(join(home, 'key.pem'), identity.key, { mode: 0o600 })
  write('cert.pem', identity.cert)
  write(
    'smtpd.conf',
    `pki main cert "${home}/cert.pem"
pki main key "${home}/key.pem"
listen on ${hosts.plain} port ${port} hostname opensmtpd.test
listen on ${hosts.secure} port ${port} tls pki main hostname opensmtpd.test
action "onward" relay host "smtp://${onward.host}:${onward.port}"
match from any for any action "onward"
`,
  )
  const words = ['-m', '/bin/sh', '-e', '-c', script, 'sh', home, folder]
  const child = spawn('/usr/bin/unshare', words, {
    env: { ...inherited(), LD_LIBRARY_PATH: librariesIn(folder) },
    stdio: 'ignore',
  })
  scope.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    rmSync(home, { recursive: true, force: true })
  })
  await until('OpenSMTPD to listen', () => {
    if (child.exitCode !== null) throw new Error(`OpenSMTPD ended with ${child.exitCode}`)
    return isListening(port, hosts.secure)
  })
}
