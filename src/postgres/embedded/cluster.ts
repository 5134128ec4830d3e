// Makes a PostgreSQL cluster, all or nothing, and refuses one of another major version.

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
 * Sees to it that `server.cluster` is a cluster of our version, making it where it is missing. It is made beside and
 * renamed, so that a killed initdb leaves nothing that looks like one. Throws `EmbeddedError` for another version.
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
    // Another start made the cluster at the same time and was first: that one counts.
    if (!(await hasCluster(server.cluster))) throw error
  }
}

async function hasCluster(cluster: string): Promise<boolean> {
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(ignoreMissing)
  if (version === null) return false
  if (version.trim() === majorVersion) return true
  throw new EmbeddedError(
    `${cluster} was made by PostgreSQL ${version.trim()} and this is PostgreSQL ${majorVersion}: run the release that made it, or copy the database into a new data folder`,
  )
}

function ignoreMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

/** What killed starts left behind; drafts of living ones stay. */
async function removeStaleDrafts(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const match = draftName.exec(name)
    if (!match) continue
    const draft = join(directory, name)
    const ageMs = Date.now() - ((await stat(draft).catch(() => null))?.mtimeMs ?? 0)
    if (isRunning(Number(match[1])) && ageMs < draftAgeMs) continue
    // An initdb that lost its parent may still write there; what stays is taken away by the next start.
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
      // Each start brings its own rules (`access.ts`).
      '--auth-local=reject',
      '--auth-host=reject',
      '--no-instructions',
      // A new segment is filled with zeros and flushed while commits wait. In MB; measured with sends of 5 KB at half of the
      // top rate: p99 22 to 50 ms, with the usual 16 MB 38 to 72.
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
  throw new EmbeddedError(`initdb ended with ${signal ?? code} in ${draft}: ${output.trim()}`)
}
