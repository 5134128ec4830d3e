// The profile: address, key and inbox of the caller, in a file that only its owner can read.
import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { UsageError } from './command.ts'

export interface Profile {
  baseUrl: string
  apiKey: string
  /** The inbox of commands without `--inbox`. */
  inbox?: string
}

export function profilePath(): string {
  const { XDG_CONFIG_HOME } = process.env
  return join(XDG_CONFIG_HOME || join(homedir(), '.config'), 'posthorn', 'profile.json')
}

/** `PH_URL` and `PH_KEY` replace the profile's, for scripts. Throws UsageError if neither has a key. */
export async function readProfile(): Promise<Profile> {
  const { PH_URL, PH_KEY } = process.env
  const stored = await readStored()
  const baseUrl = PH_URL ?? stored.baseUrl
  const apiKey = PH_KEY ?? stored.apiKey
  if (!baseUrl || !apiKey)
    throw new UsageError('You are not logged in. Run `ph login URL`, or set PH_URL and PH_KEY.')
  return { ...stored, baseUrl, apiKey }
}

async function readStored(): Promise<Partial<Profile>> {
  const path = profilePath()
  try {
    const { mode } = await stat(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw new UsageError(`Others can read your key. Run: chmod 600 ${path}`)
    return JSON.parse(await readFile(path, 'utf8')) as Partial<Profile>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw error
  }
}

export async function writeProfile(profile: Profile): Promise<void> {
  const path = profilePath()
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const written = `${path}.${process.pid}.tmp`
  await writeFile(written, `${JSON.stringify(profile, null, 2)}\n`, { mode: 0o600 })
  // The umask can only take bits away, and a file of that name may have had others.
  await chmod(written, 0o600)
  await rename(written, path)
}
