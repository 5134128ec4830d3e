// Makes a PostgreSQL cluster, all or nothing, and refuses a cluster of another major version.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chown, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { syncFolder } from '../../base/sync-folder.ts'
import { type ServerDirectory, spawnProgram } from './directory.ts'
import { EmbeddedError } from './embedded-error.ts'
import { isRunning } from './postmaster.ts'
import { superuser } from './settings.ts'

export const majorVersion = '18'

const draftName = /^cluster\.new-(\d+)-[0-9a-f]+$/
const draftAgeMs = 10 * 60_000

/**
 * Ensures that `server.cluster` is a cluster of our version, and makes it if it is missing. Makes it under another name
 * and renames it, so that a killed initdb leaves no partial cluster. Throws `EmbeddedError` for another version.
 */
export async function prepareCluster(
  server: ServerDirectory,
  progress: (line: string) => void,
): Promise<void> {
  if (await hasCluster(server.cluster)) return
  await removeStaleDrafts(server.directory)
  progress('creating the PostgreSQL cluster (first start)')
  const draft = join(server.directory, `cluster.new-${process.pid}-${randomBytes(6).toString('hex')}`)
  try {
    await mkdir(draft, { mode: 0o700 })
    if (server.owner) await chown(draft, server.owner.uid, server.owner.gid)
    await initialize(server, draft)
    await rename(draft, server.cluster)
    await syncFolder(server.directory)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    // Another start made the cluster first: use that cluster.
    if (!(await hasCluster(server.cluster))) throw error
  }
}

async function hasCluster(cluster: string): Promise<boolean> {
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(ignoreMissing)
  if (version === null) return false
  if (version.trim() === majorVersion) return true
  throw new EmbeddedError(
    `${cluster} was made by PostgreSQL ${version.trim()}, and this is PostgreSQL ${majorVersion}: run the release that made it, or make a backup with that release and restore it into a new data folder`,
  )
}

function ignoreMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

/** Deletes the drafts of killed starts. Keeps those of running starts. */
async function removeStaleDrafts(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const match = draftName.exec(name)
    if (!match) continue
    const draft = join(directory, name)
    const ageMs = Date.now() - ((await stat(draft).catch(() => null))?.mtimeMs ?? 0)
    if (isRunning(Number(match[1])) && ageMs < draftAgeMs) continue
    // An initdb that lost its parent may still write there. The next start deletes the remains.
    await rm(draft, { recursive: true, force: true, maxRetries: 5 }).catch(() => {})
  }
}

async function initialize(server: ServerDirectory, draft: string): Promise<void> {
  const child = spawnProgram(
    server,
    'initdb',
    draft,
    () => [
      `--username=${superuser}`,
      '--encoding=UTF8',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
      // Each start writes its own rules (`access.ts`).
      '--auth-local=reject',
      '--auth-host=reject',
      '--no-instructions',
      // In MB. PostgreSQL fills a new segment with zeros and flushes it while commits wait. Measured with sends of 5 KB
      // at half of the top rate: p99 22 to 50 ms. With the default of 16 MB: 38 to 72 ms.
      '--wal-segsize=1',
    ],
    { output: 'pipe' },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr] as Readable[]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4000)
    })
  }
  const [code, signal] = await once(child, 'close')
  if (code === 0) return
  throw new EmbeddedError(`initdb failed with ${signal ?? code} in ${draft}: ${output.trim()}`)
}
