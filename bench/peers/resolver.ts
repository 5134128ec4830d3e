// Starts programs that use the system's resolver so that they ask the DNS of the benchmarks.
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Returns the command that starts the given command with our resolver. */
export type Wrap = (command: string, args: string[]) => [command: string, args: string[]]

/** Uses a private mount namespace, which needs root. `dns` has port 53, because these programs can use no other. */
export function resolveBy(dns: string, folder: string): Wrap {
  if (!existsSync('/usr/bin/unshare')) throw new Error('missing: util-linux, run bench/peers/install.sh')
  if (spawnSync('/usr/bin/unshare', ['-m', 'true']).status !== 0)
    throw new Error('missing: mount namespaces, in which peers are given our DNS, are not allowed here')
  const path = join(folder, 'resolv.conf')
  writeFileSync(path, `nameserver ${dns}\n`, { mode: 0o644 })
  const script = `mount --bind ${path} /etc/resolv.conf && exec "$@"`
  return (command, args) => ['/usr/bin/unshare', ['-m', '/bin/sh', '-c', script, 'sh', command, ...args]]
}
