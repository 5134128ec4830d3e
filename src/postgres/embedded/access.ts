// Admits the user that runs the service, and root, to the embedded PostgreSQL, by the socket's kernel credentials.
import { chmod, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EmbeddedError } from './embedded-error.ts'
import { askId } from './owner.ts'
import { superuser } from './settings.ts'

const rules = { hba_file: 'pg_hba.conf', ident_file: 'pg_ident.conf' }

/**
 * Writes the access rules of one start next to the cluster, not in it: they belong to us and not to PostgreSQL's account.
 * Security: others may reach the socket's folder by a detour, such as `/proc/<pid>/cwd`. These rules still keep them out.
 */
export async function writeAccess(directory: string): Promise<void> {
  const uids = new Set([0, (await stat(directory)).uid, process.getuid?.() ?? 0])
  const names = await Promise.all([...uids].map(nameOf))
  const lines = names.map((name) => `posthorn "${name}" ${superuser}\n`)
  await replace(join(directory, rules.ident_file), lines.join(''))
  await replace(join(directory, rules.hba_file), 'local all all peer map=posthorn\n')
}

async function nameOf(uid: number): Promise<string> {
  const name = await askId('-nu', String(uid))
  if (name) return name
  throw new EmbeddedError(
    `uid ${uid} has no name, which PostgreSQL needs: add it to /etc/passwd, or run as another user`,
  )
}

/** Replaces the file atomically, for concurrent starts. PostgreSQL's account can read it, whatever our umask. */
async function replace(file: string, text: string): Promise<void> {
  const draft = `${file}.new-${process.pid}`
  await writeFile(draft, text)
  await chmod(draft, 0o644)
  await rename(draft, file)
}

/** Returns PostgreSQL's arguments for the rules. `directory` is the folder as PostgreSQL reaches it. */
export function accessSettings(directory: string): string[] {
  return Object.entries(rules).flatMap(([name, file]) => ['-c', `${name}=${directory}/${file}`])
}
