// The account that runs PostgreSQL: ours, or a separate account if we are root, because PostgreSQL refuses root.
import { execFile } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { EmbeddedError } from './embedded-error.ts'

export interface Owner {
  uid: number
  gid: number
}

const account = 'posthorn'
const run = promisify(execFile)
const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }

/**
 * Returns the account to run PostgreSQL under in `directory`; null for our own. If we are root, that is the folder's owner,
 * or `posthorn` (created if missing) if root owns the folder. Throws `EmbeddedError` if the cluster belongs to another
 * account.
 */
export async function chooseOwner(directory: string): Promise<Owner | null> {
  const cluster = join(directory, 'cluster')
  const existing = await stat(cluster).catch(() => null)
  const ownUid = process.getuid?.()
  if (ownUid !== 0) {
    if (existing && ownUid !== undefined && existing.uid !== ownUid) {
      throw new EmbeddedError(
        `${cluster} belongs to uid ${existing.uid}, but this process has uid ${ownUid}: run as that user or as root, or 'chown -R' the data folder`,
      )
    }
    return null
  }
  const folder = await stat(directory)
  // Security: other processes of a shared account, such as `postgres` or `nobody`, could read all mail in the cluster.
  const owner = folder.uid === 0 ? await ownAccount() : { uid: folder.uid, gid: folder.gid }
  if (existing && existing.uid !== owner.uid) throw await anothers(cluster, existing.uid, owner)
  return owner
}

async function anothers(cluster: string, uid: number, owner: Owner): Promise<EmbeddedError> {
  const pid = await readFile(join(cluster, 'postmaster.pid'), 'utf8').then(
    (lock) => lock.split('\n', 1)[0],
    () => null,
  )
  const first = pid ? `stop the PostgreSQL that runs there ('kill -INT ${pid}'), then ` : ''
  return new EmbeddedError(
    `${cluster} belongs to uid ${uid}, but PostgreSQL must run there as uid ${owner.uid}: ${first}run 'chown -R ${owner.uid}:${owner.gid} ${cluster}'`,
  )
}

const makers = [
  {
    program: 'useradd',
    words: ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'],
  },
  // BusyBox
  { program: 'adduser', words: ['-S', '-D', '-H', '-h', '/nonexistent'] },
]
export const noTool = 'there is neither useradd nor adduser'
const makingTries = 50
const makingPauseMs = 100

/** Returns the account's ids. If several starts create it at once, all but one fail, and try again. */
async function ownAccount(): Promise<Owner> {
  let reason = ''
  for (let tries = 0; tries < makingTries; tries++) {
    if (tries > 0) await pause(makingPauseMs)
    const uid = Number(await askId('-u', account))
    const gid = Number(await askId('-g', account))
    if (uid > 0 && gid > 0) return { uid, gid }
    reason = await makeAccount()
    if (reason === noTool) break
  }
  throw new EmbeddedError(
    `PostgreSQL does not run as root, and its own account could not be created (${reason}): run 'useradd -r ${account}', then start again`,
  )
}

/** Creates the account. Returns the error text of the program that failed; empty after success. */
async function makeAccount(): Promise<string> {
  for (const { program, words } of makers) {
    const shell = ['-s', '/sbin/nologin']
    const failure = await run(program, [...words, ...shell, account], { env }).then(
      () => '',
      (error) => (error.code === 'ENOENT' || error.code === 'EACCES' ? null : String(error.stderr).trim()),
    )
    if (failure !== null) return failure
  }
  return noTool
}

/** Returns the output of `id`, from any user database; null if there is no such account. */
export async function askId(option: '-u' | '-g' | '-nu', of: string): Promise<string | null> {
  return await run('id', [option, of], { env }).then(
    ({ stdout }) => stdout.trim(),
    () => null,
  )
}
