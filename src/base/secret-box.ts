// Secrets at rest (AES-256-GCM) and short keyed tokens (HMAC-SHA256), each use under a key of its own.
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

/** One 32-byte master key; every purpose derives its own key from it (RFC 5869), so that none can stand for another. */
export class SecretBox {
  readonly #master: Buffer
  /** Key objects: an HMAC under one costs 3 us, under bytes 12. */
  readonly #keys = new Map<string, KeyObject>()

  constructor(master: Buffer) {
    if (master.length !== 32) throw new Error('the secret key must be 32 bytes')
    this.#master = master
  }

  /** Encrypts; the answer is nonce, ciphertext and tag in one buffer. `context` must be given again to open it. */
  seal(purpose: string, plain: Buffer | string, context: string): Buffer {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#key(purpose), nonce).setAAD(Buffer.from(context))
    return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }

  /** Decrypts what `seal` made for the same purpose and context; throws when it was altered or belongs elsewhere. */
  open(purpose: string, sealed: Buffer, context: string): Buffer {
    const decipher = createDecipheriv('aes-256-gcm', this.#key(purpose), sealed.subarray(0, 12))
    decipher.setAAD(Buffer.from(context)).setAuthTag(sealed.subarray(-16))
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()])
  }

  /** A keyed digest of `text`, cut to `lengthBytes`. */
  digest(purpose: string, text: string, lengthBytes = 32): Buffer {
    return createHmac('sha256', this.#key(purpose)).update(text).digest().subarray(0, lengthBytes)
  }

  #key(purpose: string): KeyObject {
    const known = this.#keys.get(purpose)
    if (known) return known
    const key = createSecretKey(Buffer.from(hkdfSync('sha256', this.#master, '', purpose, 32)))
    this.#keys.set(purpose, key)
    return key
  }
}
