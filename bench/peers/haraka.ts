// Haraka as a peer: keeping mail in flushed files, or relaying it, in one Node program on the Node we run on.
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Scope, until } from '../../tests/support/until.ts'
import { freePort, startChild, temporaryFolder, untilReady } from '../children.ts'
import { isListening } from '../load/smtp.ts'
import { treeOf } from '../usage.ts'

export interface Haraka {
  port: number
  pids(): number[]
  /** Removes the mail it has kept. */
  clear(): void
  /** Resolves when nothing is left in its outbound queue. */
  idle(): Promise<void>
}

const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
const installed = join(cache, 'posthorn-bench/haraka/node_modules/Haraka')
const plugin = fileURLToPath(new URL('haraka-plugin.cjs', import.meta.url))

/** Starts a Haraka that keeps mail in files, flushed before the 250; with `relayPort`, one that relays it there. */
export async function startHaraka(scope: Scope, options: { relayPort?: number } = {}): Promise<Haraka> {
  if (!existsSync(installed)) throw new Error('missing: run bench/peers/install.sh')
  const folder = temporaryFolder(scope, 'haraka')
  const port = await freePort()
  configure(folder, port, options.relayPort)
  const child = startChild(scope, folder, process.execPath, [join(installed, 'bin/haraka'), '-c', folder])
  await untilReady(child, 'Haraka listens', () => isListening(port))
  const kept = join(folder, 'kept')
  const queue = join(folder, 'queue')
  return {
    port,
    pids: () => treeOf(child.pid),
    clear: () => {
      for (const name of readdirSync(kept)) rmSync(join(kept, name))
    },
    idle: async () => {
      await until('Haraka empties its queue', () => readdirSync(queue).length === 0, { timeoutMs: 120_000 })
    },
  }
}

/** The version installed, or why there is none. */
export function harakaVersion(): string {
  const manifest = join(installed, 'package.json')
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : 'missing'
}

function configure(folder: string, port: number, relayPort?: number): void {
  for (const name of ['config', 'plugins', 'kept', 'partial', 'queue']) mkdirSync(join(folder, name))
  copyFileSync(plugin, join(folder, 'plugins/bench.js'))
  copyFileSync(join(installed, 'config/connection.ini'), join(folder, 'config/connection.ini'))
  const files: Record<string, string[]> = {
    'smtp.ini': [`listen=127.0.0.1:${port}`, 'nodes=0'],
    'outbound.ini': ['enable_tls=false', 'concurrency_max=100', 'local_mx_ok=true'],
    'bench.ini': [`folder=${folder}`, ...(relayPort ? [`relay_port=${relayPort}`] : [])],
    plugins: ['bench'],
    loglevel: ['WARN'],
    me: ['mx.bench.invalid'],
  }
  for (const [name, lines] of Object.entries(files))
    writeFileSync(join(folder, 'config', name), `${lines.join('\n')}\n`)
}
