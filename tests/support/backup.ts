// Backups as an operator makes them: by the command, and restored into an empty database and folder.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Queryable } from '../../src/postgres/db.ts'
import { listTables } from '../../src/postgres/tables.ts'
import { ownProgram, runCommand } from './command.ts'
import { urlOf } from './node.ts'
import { emptyDatabase } from './postgres.ts'
import type { Posthorn } from './service.ts'
import type { Scope } from './until.ts'

export const passphrase = { POSTHORN_BACKUP_PASSPHRASE: 'correct horse battery staple' }

export interface BackupAnswer {
  folder: string
  id: string
  tables: number
  rows: number
  blobs: { count: number; bytes: number; missing: string[] }
  key: string
}

type Env = Record<string, string>

/** A folder that every user can traverse. It is removed with the scope. */
export function temporaryFolder(scope: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-backup-'))
  chmodSync(folder, 0o755)
  scope.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 }))
  return folder
}

/** The service's settings with an empty data folder and an empty database of the kind that the tests use. */
export async function emptyPlace(
  scope: Scope,
  posthorn: Pick<Posthorn, 'env'>,
  kind: 'usual' | 'external' = 'usual',
): Promise<Env> {
  const { POSTHORN_DATABASE_URL: _, ...env } = posthorn.env
  const isExternal = kind === 'external' || process.env['POSTHORN_TEST_DATABASE_URL'] !== undefined
  return {
    ...env,
    POSTHORN_DATA_DIR: join(temporaryFolder(scope), 'data'),
    ...(isExternal && { POSTHORN_DATABASE_URL: urlOf(await emptyDatabase(scope)) }),
  }
}

/** Runs any command as it is typed. */
export async function command(words: string[], env: Env) {
  return await runCommand(words, env, tmpdir())
}

export async function verify(folder: string, env: Env) {
  const { status, stdout, stderr } = await command(['backup', 'verify', folder, '--json'], env)
  if (!stdout) throw new Error(stderr)
  const answer: { status: string; faults: string[] } = JSON.parse(stdout)
  return { exitStatus: status, ...answer }
}

/** Starts the command and kills it once `isReached`. Returns whether it was still running then. */
export async function killWhen(words: string[], env: Env, isReached: () => boolean): Promise<boolean> {
  const child = spawn(ownProgram, words, { env, cwd: tmpdir(), stdio: 'ignore' })
  const ended = once(child, 'exit')
  const watching = setInterval(() => void (isReached() && child.kill('SIGKILL')), 1)
  await ended
  clearInterval(watching)
  return child.signalCode === 'SIGKILL'
}

/** Counts the files in a folder and its subfolders. */
export function countFiles(folder: string): number {
  if (!existsSync(folder)) return 0
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    .length
}

/** A mail with an incompressible attachment of this size. */
export function heavyMail(to: string, messageId: string, bytes: number): Buffer {
  const lines = randomBytes(bytes)
    .toString('base64')
    .match(/.{1,76}/g)!
    .join('\r\n')
  const head = `From: s@sender.test\r\nTo: ${to}\r\nSubject: Heavy\r\nMessage-ID: ${messageId}\r\n`
  const type = 'Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n'
  return Buffer.from(`${head}${type}\r\n${lines}\r\n`)
}

/** A digest of all rows, by table. */
export async function digestTables(db: Queryable): Promise<Record<string, string>> {
  const digests: Record<string, string> = {}
  for (const { name } of await listTables(db)) {
    const [row] = await db.query<{ digest: string }>(
      `select count(*) || ' ' || coalesce(md5(string_agg(md5(t::text), '' order by md5(t::text))), '') as digest
      from ${name} t`,
    )
    digests[name] = row!.digest
  }
  return digests
}

/** The peak memory of the command's process, in MiB. */
export async function peakMemory(words: string[], env: Env): Promise<number> {
  const child = spawn(ownProgram, words, { env, cwd: tmpdir(), stdio: 'ignore' })
  let peakKib = 0
  const watching = setInterval(() => {
    try {
      const text = readFileSync(`/proc/${child.pid}/status`, 'utf8')
      peakKib = Math.max(peakKib, Number(/^VmHWM:\s+(\d+)/m.exec(text)?.[1] ?? 0))
    } catch {
      // the process has ended
    }
  }, 20)
  const [code] = await once(child, 'exit')
  clearInterval(watching)
  if (code !== 0) throw new Error(`posthorn ${words.join(' ')} ended with ${code}`)
  return peakKib / 1024
}
