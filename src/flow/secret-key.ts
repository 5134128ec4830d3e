// The key that seals secrets at rest: read or made, and held against the check value that the database keeps of it.
import { randomBytes, randomUUID } from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartRefused } from '../base/errors.ts'
import { SecretBox } from '../base/secret-box.ts'
import { syncFolder } from '../base/sync-folder.ts'
import type { Db, Tx } from '../postgres/db.ts'
import { findSealed, lockKeyCheck, readKeyCheck, writeKeyCheck } from '../store/database-identity.ts'
import { openDkimKey } from './dkim-secret.ts'
import { openSigningSecret } from './signing-secret.ts'

/** The key in `file`, 32 bytes or 64 hex characters; null where there is no such file. */
export async function readSecretKey(file: string): Promise<Buffer | null> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw refused(`the secret key cannot be read (${error.message})`, 'let this user read the file')
  })
  if (bytes === null || bytes.length === 32) return bytes
  const text = bytes.toString('latin1').trim()
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  throw refused(`${file} must hold 32 bytes, or 64 hex characters`, `put the secret key there, ${fromWhere}`)
}

interface KeyFile {
  file: string
  key: Buffer | null
  /** Whether a key may be made where the database has none yet. */
  mayMake: boolean
}

/** Under another key nothing of the database opens, and what it seals nobody else can open: that stops every start. */
export async function settleSecretKey({ db }: { db: Db }, keyFile: KeyFile): Promise<SecretBox> {
  const check = await readKeyCheck(db)
  return check ? requireMatching(check, keyFile) : await db.transaction((tx) => settleFirst(tx, keyFile))
}

/** Under the lock: of nodes that start together one makes the key, and the others see that it is not theirs. */
async function settleFirst(tx: Tx, keyFile: KeyFile): Promise<SecretBox> {
  const check = await lockKeyCheck(tx)
  if (check) return requireMatching(check, keyFile)
  const { file, key, mayMake } = keyFile
  const sealed = await findSealed(tx)
  if (!key && (!mayMake || sealed.dkimKey || sealed.webhook)) throw missing(file)
  const box = new SecretBox(key ?? (await makeSecretKey(file)))
  try {
    if (sealed.dkimKey) openDkimKey(box, sealed.dkimKey)
    if (sealed.webhook) openSigningSecret(box, sealed.webhook.id, sealed.webhook.sealed)
  } catch {
    throw another(file) // it says no more than that the key is not the one
  }
  await writeKeyCheck(tx, checkOf(box))
  return box
}

/** The box of the key; refused where that is not the one which `check` was made with. */
export function requireMatching(check: Buffer, { file, key }: Pick<KeyFile, 'file' | 'key'>): SecretBox {
  if (!key) throw missing(file)
  const box = new SecretBox(key)
  if (!checkOf(box).equals(check)) throw another(file)
  return box
}

function checkOf(box: SecretBox): Buffer {
  return box.digest('secret-key-check', 'posthorn')
}

/**
 * On disk, whole and with its name, before anything is sealed with it; readable by its owner alone. Where another process
 * makes one at the same moment the first is the key of both.
 */
async function makeSecretKey(file: string): Promise<Buffer> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${randomUUID()}`
  try {
    await writeFlushed(draft, randomBytes(32).toString('hex'))
    // A rename would take the place of a key that another process has made.
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(dirname(file))
  return (await readSecretKey(file))!
}

async function writeFlushed(file: string, text: string): Promise<void> {
  const created = await open(file, 'wx', 0o600)
  try {
    await created.writeFile(text)
    await created.sync()
  } finally {
    await created.close()
  }
}

const fromWhere = 'copied from a node of this database (<data>/secret-key), or from a backup'

function missing(file: string): StartRefused {
  return refused(`the secret key of this database is not there (${file})`, `put it there, ${fromWhere}`)
}

function another(file: string): StartRefused {
  return refused(`${file} is not the secret key of this database`, `put its own there, ${fromWhere}`)
}

function refused(reason: string, mend: string): StartRefused {
  return new StartRefused('secret key', reason, mend)
}
