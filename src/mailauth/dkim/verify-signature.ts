// Verifies one signature over given bytes with the candidate keys.
import { hash, verify } from 'node:crypto'
import type { DkimKeyRecord } from './key-record.ts'
import type { SealTags } from './signature.ts'

/**
 * The first key that verifies the signature over `canonical`, which is Latin-1. Null if none does. Runs on the calling
 * thread. Measured for 1.5 KB: RSA-2048 takes 21 µs here, and 65 µs of processor time through libuv's pool.
 */
export function findVerifyingKey(
  { algorithm, signature }: SealTags,
  canonical: string,
  keys: readonly DkimKeyRecord[],
): DkimKeyRecord | null {
  const bytes = Buffer.from(canonical, 'latin1')
  const isRsa = algorithm === 'rsa-sha256'
  // RFC 8463 3: Ed25519 signs the SHA-256 of the bytes that RSA would sign.
  const signed = isRsa ? bytes : hash('sha256', bytes, 'buffer')
  return keys.find(({ publicKey }) => verify(isRsa ? 'sha256' : null, signed, publicKey, signature)) ?? null
}
