// Haraka as a peer that keeps mail in flushed files or relays it, as one program on our Node version.
import { execFileSync } from 'node:child_process'
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
import type { Wrap } from './resolver.ts'
import { type SigningKey, signedFields } from './signing.ts'

export interface Haraka {
  port: number
  pids(): number[]
  /** Removes the mail that Haraka has kept. */
  clear(): void
  /** Resolves when Haraka's outbound queue is empty. */
  idle(): Promise<void>
}

const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
const installed = join(cache, 'posthorn-bench/haraka/node_modules/Haraka')
const plugin = fileURLToPath(new URL('haraka-plugin.cjs', import.meta.url))

interface HarakaOptions {
  /** Relays everything to a port, or to the mail servers of its domains. Without it Haraka keeps mail. */
  onward?: number | 'mx'
  /** Signs outgoing mail with this key. */
  key?: SigningKey
  /** Starts Haraka so that it asks our DNS. */
  wrap?: Wrap
  /** Two more listeners, of which one has STARTTLS, with this key and certificate chain. */
  secured?: { plainHost: string; secureHost: string; port: number; key: string; cert: string }
}

/** Starts a Haraka that relays mail, or that keeps it in files flushed before the 250. */
export async function startHaraka(scope: Scope, options: HarakaOptions = {}): Promise<Haraka> {
  if (!existsSync(installed)) throw new Error('missing: run bench/peers/install.sh')
  const folder = temporaryFolder(scope, 'haraka')
  const port = await freePort()
  configure(folder, port, options)
  const { wrap = (command, args) => [command, args] } = options
  const child = startChild(
    scope,
    folder,
    ...wrap(process.execPath, [join(installed, 'bin/haraka'), '-c', folder]),
  )
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

/** Returns the installed versions of Haraka and its signing plugin, or that one is missing. */
export function harakaVersions(): { Haraka: string; 'haraka-plugin-dkim': string } {
  const versionIn = (folder: string) => {
    const manifest = join(folder, 'package.json')
    return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : 'missing'
  }
  const beside = join(installed, '../haraka-plugin-dkim')
  return { Haraka: versionIn(installed), 'haraka-plugin-dkim': versionIn(beside) }
}

function configure(folder: string, port: number, { onward, key, secured }: HarakaOptions): void {
  for (const name of ['config', 'plugins', 'kept', 'partial', 'queue']) mkdirSync(join(folder, name))
  copyFileSync(plugin, join(folder, 'plugins/bench.js'))
  copyFileSync(join(installed, 'config/connection.ini'), join(folder, 'config/connection.ini'))
  const more = secured
    ? [secured.plainHost, secured.secureHost].map((host) => `,${host}:${secured.port}`)
    : []
  const plugins = ['bench', ...(key ? ['dkim'] : []), ...(secured ? ['tls'] : [])]
  const files: Record<string, string[]> = {
    'smtp.ini': [`listen=127.0.0.1:${port}${more.join('')}`, 'nodes=0'],
    'outbound.ini': ['enable_tls=false', 'concurrency_max=100', 'local_mx_ok=true'],
    'bench.ini': [
      `folder=${folder}`,
      ...(onward ? [`onward=${onward}`] : []),
      ...(secured ? [`plain=${secured.plainHost}`] : []),
    ],
    plugins,
    loglevel: ['WARN'],
    me: ['mx.bench.invalid'],
    ...(key ? signingFiles(key) : {}),
    ...(secured ? tlsFiles(secured) : {}),
  }
  for (const [name, lines] of Object.entries(files))
    writeFileSync(join(folder, 'config', name), `${lines.join('\n')}\n`)
}

function tlsFiles({ key, cert }: { key: string; cert: string }): Record<string, string[]> {
  const group = ['genpkey', '-genparam', '-algorithm', 'DH', '-pkeyopt', 'group:ffdhe2048']
  return {
    // Without this file, Haraka searches for a prime for many seconds.
    'dhparams.pem': [execFileSync('openssl', group, { encoding: 'utf8' }).trim()],
    'tls.ini': ['key=key.pem', 'cert=cert.pem'],
    'key.pem': [key.trim()],
    'cert.pem': [cert.trim()],
  }
}

/** Returns the files of haraka-plugin-dkim, which comes with Haraka. */
function signingFiles({ domain, selector, privateKey }: SigningKey): Record<string, string[]> {
  const sign = [
    'enabled=true',
    `domain=${domain}`,
    `selector=${selector}`,
    `headers=${signedFields.join(',')}`,
  ]
  return {
    'dkim.ini': ['[sign]', ...sign, '[canon]', 'body=relaxed', '[verify]', 'enabled=false'],
    'dkim.private.key': [privateKey.trim()],
  }
}
