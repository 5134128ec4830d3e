// Where one embedded PostgreSQL lives on disk, and how its programs are run there.
import { type SpawnOptions, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { chooseOwner, type Owner } from './owner.ts'
import { locateSoftware } from './software.ts'

/** Everything below `directory`: `cluster` (PostgreSQL's own files), `socket`, `log`. */
export interface ServerDirectory {
  directory: string
  cluster: string
  socket: string
  log: string
  software: string
  /** The account PostgreSQL runs under; null is ours. */
  owner: Owner | null
}

/** Makes the folders that are missing. Root's folder lets the account through; the ones below are the account's alone. */
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
 * Spawns a program of PostgreSQL's on `cluster`, its standard output and error going to `output`; `parameters` are told how
 * it reaches our folder. As root on Linux that folder goes along as an open descriptor: the account reaches what is below
 * it under any 0700 folder, such as root's home. It does not wait for anything, so that who listens to the child at once
 * misses neither its error nor its exit.
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

/** Socket paths end at 107 bytes on Linux, 103 on macOS, file name included; this leaves room for `/.s.PGSQL.5432`. */
const maxSocketFolderBytes = 85

/** A path to the socket folder that is short enough to connect by; `remove` takes away what was made for it. */
export async function shortSocketFolder(socket: string): Promise<{ path: string; remove(): Promise<void> }> {
  if (Buffer.byteLength(socket) <= maxSocketFolderBytes) return { path: socket, remove: async () => {} }
  // Security: mkdtemp makes a 0700 folder of a random name, so that nobody can put another socket in its place.
  const folder = await mkdtemp('/tmp/posthorn-')
  const path = join(folder, 'socket')
  await symlink(socket, path)
  return { path, remove: () => rm(folder, { recursive: true, force: true }) }
}
