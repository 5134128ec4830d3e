// Who may connect to the embedded PostgreSQL: who runs the service, and root, as the kernel names the peer of the socket.
import { chmod, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EmbeddedError } from './embedded-error.ts'
import { askId } from './owner.ts'
import { superuser } from './settings.ts'

const rules = { hba_file: 'pg_hba.conf', ident_file: 'pg_ident.conf' }

/**
 * Writes the rules of one start, beside the cluster and not in it: they are ours and not the account's. Security: the
 * folder of the socket can be entered by whoever finds a way around it, as through `/proc/<pid>/cwd`; the rules cannot.
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
    `uid ${uid} has no name, by which PostgreSQL would know it: give it one in /etc/passwd, or run as another user`,
  )
}

/** At once for others who start at the same time, and readable by PostgreSQL's account whatever our umask. */
async function replace(file: string, text: string): Promise<void> {
  const draft = `${file}.new-${process.pid}`
  await writeFile(draft, text)
  await chmod(draft, 0o644)
  await rename(draft, file)
}

/** PostgreSQL's command line for them; `directory` is the folder as PostgreSQL reaches it. */
export function accessSettings(directory: string): string[] {
  return Object.entries(rules).flatMap(([name, file]) => ['-c', `${name}=${directory}/${file}`])
}
