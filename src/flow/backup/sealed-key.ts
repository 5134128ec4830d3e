// The secret key in a backup, with former keys during a change, sealed by a passphrase (argon2id, AES-256-GCM).
import { argon2, createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { StartRefused } from '../../base/errors.ts'

// RFC 9106 4: the second recommended choice.
const cost = { memory: 65_536, passes: 3, parallelism: 4 }
export const minPassphraseLength = 12
const keyBytes = 32

const derive = promisify(argon2)

interface Sealed {
  derivation: string
  memory: number
  passes: number
  parallelism: number
  salt: string
  nonce: string
  sealed: string
}

/** The text of the key file. It can only be opened as part of the backup `id`. */
export async function sealKeys(keys: readonly Buffer[], passphrase: string, id: string): Promise<string> {
  const [salt, nonce] = [randomBytes(16), randomBytes(12)]
  const cipher = createCipheriv('aes-256-gcm', await deriveKey(passphrase, salt), nonce).setAAD(contextOf(id))
  const sealed = Buffer.concat([cipher.update(Buffer.concat(keys)), cipher.final(), cipher.getAuthTag()])
  const text: Sealed = {
    derivation: 'argon2id',
    ...cost,
    salt: salt.toString('hex'),
    nonce: nonce.toString('hex'),
    sealed: sealed.toString('hex'),
  }
  return `${JSON.stringify(text, null, 2)}\n`
}

/** The keys. Refuses a wrong passphrase. */
export async function openKeys(text: string, passphrase: string, id: string): Promise<Buffer[]> {
  const file: Sealed = JSON.parse(text)
  if (file.derivation !== 'argon2id' || file.memory !== cost.memory || file.passes !== cost.passes)
    throw new StartRefused(
      'backup',
      'the key of the backup is sealed in a format that this release cannot read',
      'restore it with the release that made it',
    )
  const key = await deriveKey(passphrase, Buffer.from(file.salt, 'hex'))
  const sealed = Buffer.from(file.sealed, 'hex')
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(file.nonce, 'hex'))
    decipher.setAAD(contextOf(id)).setAuthTag(sealed.subarray(-16))
    const keys = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])
    return Array.from({ length: keys.length / keyBytes }, (_, i) =>
      keys.subarray(i * keyBytes, (i + 1) * keyBytes),
    )
  } catch {
    // The tag does not match. GCM gives no further reason.
    const mend = 'use the passphrase that the backup was made with'
    throw new StartRefused('backup', 'the passphrase does not open the key of this backup', mend)
  }
}

async function deriveKey(passphrase: string, nonce: Buffer): Promise<Buffer> {
  // One normal form, whatever the keyboard.
  const message = passphrase.normalize('NFKC')
  return await derive('argon2id', { message, nonce, ...cost, tagLength: 32 })
}

function contextOf(id: string): Buffer {
  return Buffer.from(`posthorn-backup ${id}`)
}
