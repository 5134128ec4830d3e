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

/** Seals and opens under one key, and knows the lasting digests of former ones. */
export class SecretBox {
  readonly #key: MasterKey
  #verifiers: readonly Record<LastingDigest, KeyObject>[] = []

  constructor(key: Buffer) {
    this.#key = new MasterKey(key)
  }

  /** Believes the lasting digests of keys that are gone as well. */
  believe(verifiers: readonly Verifiers[]): void {
    this.#verifiers = verifiers.map((each) => ({
      'return-path': createSecretKey(each['return-path']),
      'list cursor': createSecretKey(each['list cursor']),
    }))
  }

  /** Encrypts; the answer is nonce, ciphertext and tag in one buffer. `context` must be given again to open it. */
  seal(purpose: string, plain: Buffer | string, context: string): Buffer {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#key.key(purpose), nonce)
    cipher.setAAD(Buffer.from(context))
    return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }

  /** Decrypts what `seal` made for the same purpose and context; throws when it was altered or belongs elsewhere. */
  open(purpose: string, sealed: Buffer, context: string): Buffer {
    return this.#key.open(purpose, sealed, context)
  }

  /** A keyed digest of `text`, cut to `lengthBytes`. */
  digest(purpose: string, text: string, lengthBytes = 32): Buffer {
    return digestOf(this.#key.key(purpose), text, lengthBytes)
  }

  /** Whether `given`, of the length that is wanted, is the digest of `text` under the key or a former one. */
  isDigest(purpose: LastingDigest, text: string, given: Buffer): boolean {
    const keys = [this.#key.key(purpose), ...this.#verifiers.map((each) => each[purpose])]
    return keys.some((key) => timingSafeEqual(digestOf(key, text, given.length), given))
  }

  /** By what the key is known: nobody finds a key by it. */
  get check(): Buffer {
    return digestOf(this.#key.key('secret-key-check'), 'posthorn', 32)
  }

  /** Derived keys that will know the lasting digests of this key once it is gone. */
  get verifiers(): Verifiers {
    return { 'return-path': this.#key.derive('return-path'), 'list cursor': this.#key.derive('list cursor') }
  }
}

/** By what a key is known. */
export function checkOf(key: Buffer): Buffer {
  return new SecretBox(key).check
}

function digestOf(key: KeyObject, text: string, lengthBytes: number): Buffer {
  return createHmac('sha256', key).update(text).digest().subarray(0, lengthBytes)
}
