// The folders of one embedded PostgreSQL, and how to run its programs there.
import { type SpawnOptions, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { chooseOwner, type Owner } from './owner.ts'
import { locateSoftware } from './software.ts'

/** The paths below `directory`: `cluster` (PostgreSQL's own files), `socket`, `log`. */
export interface ServerDirectory {
  directory: string
  cluster: string
  socket: string
  log: string
  software: string
  /** The account that runs PostgreSQL; null for our own. */
  owner: Owner | null
}

/** Makes missing folders. If we are root, others may pass through `directory`, and PostgreSQL's account owns `socket`. */
export async function prepareDirectory(folder: string): Promise<ServerDirectory> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const directory = await realpath(folder)
  const owner = await chooseOwner(directory)
  if (owner) await chmod(directory, 0o711)
  const socket = join(directory, 'socket')
  await mkdir(socket, { recursive: true, mode: 0o700 })
  if (owner) await chown(socket, owner.uid, owner.gid)
  const software = await locateSoftware(directory, owner)
  return {
    directory,
    cluster: join(directory, 'cluster'),
    socket,
    log: join(directory, 'log'),
    software,
    owner,
  }
}

/**
 * Spawns a PostgreSQL program on `cluster`. Its standard output and error go to `output`. `parameters` receives the path
 * by which the program reaches our folder. As root on Linux the program inherits the folder as an open descriptor. So
 * the account reaches it even under a 0700 folder, such as root's home. Synchronous, so that a caller who listens to
 * the child at once misses neither its error nor its exit.
 */
export function spawnProgram(
  server: ServerDirectory,
  program: 'initdb' | 'postgres',
  cluster: string,
  parameters: (directory: string) => string[],
  options: { output: 'pipe' | number; detached?: boolean },
) {
  const { owner, software, directory } = server
  const folder = owner && process.platform === 'linux' ? openSync(directory, 'r') : null
  try {
    const settings: SpawnOptions = {
      ...(owner ?? {}),
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      detached: options.detached ?? false,
      stdio: ['ignore', options.output, options.output, folder ?? 'ignore'],
    }
    const reached = folder !== null ? '/proc/self/fd/3' : directory
    const words = ['-D', join(reached, basename(cluster)), ...parameters(reached)]
    return spawn(join(software, 'bin', program), words, settings)
  } finally {
    if (folder !== null) closeSync(folder)
  }
}

/** Socket paths have at most 107 bytes on Linux, 103 on macOS, file name included. This leaves room for `/.s.PGSQL.5432`. */
const maxSocketFolderBytes = 85

/** Returns a path to the socket folder that is short enough to connect by. `remove` deletes the link made for it, if any. */
export async function shortSocketFolder(socket: string): Promise<{ path: string; remove(): Promise<void> }> {
  if (Buffer.byteLength(socket) <= maxSocketFolderBytes) return { path: socket, remove: async () => {} }
  // Security: mkdtemp makes a 0700 folder with a random name, so that no other user can put a socket in its place.
  const folder = await mkdtemp('/tmp/posthorn-')
  const path = join(folder, 'socket')
  await symlink(socket, path)
  return { path, remove: () => rm(folder, { recursive: true, force: true }) }
}
