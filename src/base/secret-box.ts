// Secrets at rest (AES-256-GCM) and short keyed tokens (HMAC-SHA256), each use under a key of its own.
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/** What is known again by its digest long after it was given out, so that it outlives a change of the secret key. */
type LastingDigest = 'return-path' | 'list cursor'

/** What knows the lasting digests of a former key: its derived keys, which open nothing. */
export type Verifiers = Record<LastingDigest, Buffer>

/** One 32-byte master key; every purpose derives its own key from it (RFC 5869), so that none can stand for another. */
class MasterKey {
  readonly #master: Buffer
  /** Key objects: an HMAC under one costs 3 us, under bytes 12. */
  readonly #keys = new Map<string, KeyObject>()

  constructor(master: Buffer) {
    if (master.length !== 32) throw new Error('the secret key must be 32 bytes')
    this.#master = master
  }

  derive(purpose: string): Buffer {
    return Buffer.from(hkdfSync('sha256', this.#master, '', purpose, 32))
  }

  key(purpose: string): KeyObject {
    const known = this.#keys.get(purpose)
    if (known) return known
    const key = createSecretKey(this.derive(purpose))
    this.#keys.set(purpose, key)
    return key
  }

  open(purpose: string, sealed: Buffer, context: string): Buffer {
    const decipher = createDecipheriv('aes-256-gcm', this.key(purpose), sealed.subarray(0, 12))
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-16))
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
  }
}

/** Seals under one key, and opens under that and, while the secret key is being changed, under others. */
export class SecretBox {
  #keys: readonly [MasterKey, ...MasterKey[]]
  #verifiers: readonly Record<LastingDigest, KeyObject>[] = []

  constructor(key: Buffer) {
    this.#keys = [new MasterKey(key)]
  }

  /** From now on the first of these keys seals, and all open; `verifiers` know the lasting digests of keys that are gone. */
  use([first, ...others]: readonly [Buffer, ...Buffer[]], verifiers: readonly Verifiers[]): void {
    this.#verifiers = verifiers.map((each) => ({
      'return-path': createSecretKey(each['return-path']),
      'list cursor': createSecretKey(each['list cursor']),
    }))
    this.#keys = [new MasterKey(first), ...others.map((other) => new MasterKey(other))]
  }

  /** Encrypts; the answer is nonce, ciphertext and tag in one buffer. `context` must be given again to open it. */
  seal(purpose: string, plain: Buffer | string, context: string): Buffer {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#keys[0].key(purpose), nonce)
    cipher.setAAD(Buffer.from(context))
    return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }

  /** Decrypts what `seal` made for the same purpose and context; throws when it was altered or belongs elsewhere. */
  open(purpose: string, sealed: Buffer, context: string): Buffer {
    for (const key of this.#keys.slice(0, -1)) {
      try {
        return key.open(purpose, sealed, context)
      } catch {
        // Another key's, as it seems.
      }
    }
    return this.#keys.at(-1)!.open(purpose, sealed, context)
  }

  /** Whether the key that seals opens it. */
  isCurrent(purpose: string, sealed: Buffer, context: string): boolean {
    try {
      this.#keys[0].open(purpose, sealed, context)
      return true
    } catch {
      return false // another key's, or altered
    }
  }

  /** A keyed digest of `text`, cut to `lengthBytes`. */
  digest(purpose: string, text: string, lengthBytes = 32): Buffer {
    return digestOf(this.#keys[0].key(purpose), text, lengthBytes)
  }

  /** Whether `given`, of the length that is wanted, is the digest of `text` under any of the keys, former ones included. */
  isDigest(purpose: LastingDigest, text: string, given: Buffer): boolean {
    const keys = [
      ...this.#keys.map((key) => key.key(purpose)),
      ...this.#verifiers.map((each) => each[purpose]),
    ]
    return keys.some((key) => timingSafeEqual(digestOf(key, text, given.length), given))
  }

  /** By what the keys are known, the one that seals first: nobody finds a key by it. */
  get checks(): Buffer[] {
    return this.#keys.map((key) => digestOf(key.key('secret-key-check'), 'posthorn', 32))
  }

  /** What will know the lasting digests of the key that seals, once that is gone. */
  get verifiers(): Verifiers {
    const [key] = this.#keys
    return { 'return-path': key.derive('return-path'), 'list cursor': key.derive('list cursor') }
  }
}

/** By what a key is known. */
export function checkOf(key: Buffer): Buffer {
  return new SecretBox(key).checks[0]!
}

function digestOf(key: KeyObject, text: string, lengthBytes: number): Buffer {
  return createHmac('sha256', key).update(text).digest().subarray(0, lengthBytes)
}
