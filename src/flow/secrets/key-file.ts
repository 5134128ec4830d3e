// The file of the secret key: usually one key, and a former or next one as well while the key is being changed.
import { randomBytes, randomUUID } from 'node:crypto'
import { link, mkdir, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StartRefused } from '../../base/errors.ts'
import { syncFolder } from '../../base/sync-folder.ts'

const maxKeys = 8
/** Enough bytes for `maxKeys` lines of 64 hex characters, with white space around them. */
const maxFileBytes = 1_024

export const fromWhere = 'copied from another node of this database (<data>/secret-key) or from a backup'

/** The keys in `file`: 32 bytes, or 64 hex characters a line. Null if there is no such file. */
export async function readKeyFile(file: string): Promise<[Buffer, ...Buffer[]] | null> {
  const bytes = await readStart(file, maxFileBytes).catch(({ code }: NodeJS.ErrnoException) => {
    if (code === 'ENOENT') return null
    const mend = 'let this user read it, or set POSTHORN_SECRET_KEY_FILE to another file'
    throw refused(`${file} cannot be read (${code})`, mend)
  })
  if (bytes === null) return null
  if (bytes.length === 32) return [bytes]
  const [first = '', ...others] = bytes
    .toString('latin1')
    .trim()
    .split(/\s*\n\s*/)
  const isKey = (line: string) => /^[0-9a-f]{64}$/i.test(line)
  const read = (line: string) => Buffer.from(line, 'hex')
  if (others.length < maxKeys && [first, ...others].every(isKey)) return [read(first), ...others.map(read)]
  throw refused(
    `${file}, the POSTHORN_SECRET_KEY_FILE, must hold 32 bytes, or 64 hex characters`,
    `put the secret key there, ${fromWhere}`,
  )
}

/** The file's first bytes. A device has no end, so this does not read to the end. */
async function readStart(file: string, maxBytes: number): Promise<Buffer> {
  const opened = await open(file)
  try {
    const buffer = Buffer.alloc(maxBytes)
    let length = 0
    for (let read = -1; read !== 0 && length < maxBytes; length += read)
      read = (await opened.read(buffer, length, maxBytes - length, null)).bytesRead
    return buffer.subarray(0, length)
  } finally {
    await opened.close()
  }
}

/**
 * Makes a new key file, readable by its owner alone. It is complete on disk under its name before anything is sealed with
 * it. If another process makes one at the same moment, both use the first.
 */
export async function makeKeyFile(file: string): Promise<Buffer> {
  const draft = `${file}.${randomUUID()}`
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFlushed(draft, randomBytes(32).toString('hex'))
    // A rename would replace a key that another process has made.
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  } catch (error) {
    const mend = 'let this user write to the folder, or name a key file in POSTHORN_SECRET_KEY_FILE'
    throw refused(`${file} cannot be written (${(error as NodeJS.ErrnoException).code})`, mend)
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(dirname(file))
  return (await readKeyFile(file))![0]
}

/** Replaces the file's keys. At any instant the file holds either the old or the new list, complete. */
export async function replaceKeyFile(named: string, keys: readonly Buffer[]): Promise<void> {
  // Follows a symbolic link, so that it stays one.
  const file = await realpath(named)
  const { uid, gid } = await stat(file)
  const draft = `${file}.${randomUUID()}`
  try {
    await writeFlushed(draft, keys.map((key) => `${key.toString('hex')}\n`).join(''), { uid, gid })
    await rename(draft, file)
  } finally {
    await rm(draft, { force: true })
  }
  await syncFolder(dirname(file))
}

async function writeFlushed(file: string, text: string, owner?: { uid: number; gid: number }): Promise<void> {
  const created = await open(file, 'wx', 0o600)
  try {
    if (owner) await created.chown(owner.uid, owner.gid)
    await created.writeFile(text)
    await created.sync()
  } finally {
    await created.close()
  }
}

export function refused(reason: string, mend: string): StartRefused {
  return new StartRefused('secret key', reason, mend)
}
