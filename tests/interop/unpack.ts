// Mail servers of Debian that cannot be installed together with Postfix: their files in a cache folder that unpack.sh fills.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

export type Unpacked = { folder: string } | { missing: string }

/** Returns the folder of the program's files, or the reason why there is none. */
export function unpack(name: 'exim' | 'opensmtpd'): Unpacked {
  const words = [join(import.meta.dirname, 'unpack.sh'), name]
  try {
    const folder = execFileSync('/bin/sh', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    return { folder: folder.trim() }
  } catch {
    // There is no apt or network, or this is not Debian.
    return { missing: `${name} could not be fetched (tests/interop/unpack.sh)` }
  }
}

/** The folder of the shared libraries that were unpacked with a program. */
export function librariesIn(folder: string): string {
  return join(folder, 'usr/lib', process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu')
}
