// A software passkey: makes credentials and signs challenges as an authenticator and a browser do (WebAuthn Level 3).
import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'

interface Creation {
  challenge: string
  rp: { id: string }
  user: { id: string }
}

interface Request {
  challenge: string
  rpId: string
}

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest()
const base64url = (bytes: Buffer) => bytes.toString('base64url')

/** User present, and verified. */
const present = 0x01
const verified = 0x04
const hasCredential = 0x40

export class Authenticator {
  readonly #key: KeyObject
  readonly #publicKey: Buffer
  readonly id = randomBytes(32)
  #userHandle = ''
  counter = 0

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#key = privateKey
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
    this.#publicKey = coseKey(Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url'))
  }

  /** The result of `navigator.credentials.create` for these options on a page of the origin, as JSON. */
  create({ challenge, rp, user }: Creation, origin: string): object {
    this.#userHandle = user.id
    const length = Buffer.alloc(2)
    length.writeUInt16BE(this.id.length)
    const attested = Buffer.concat([Buffer.alloc(16), length, this.id, this.#publicKey])
    const data = Buffer.concat([this.#authenticatorData(rp.id, present | verified | hasCredential), attested])
    const object = cborMap([
      [cborText('fmt'), cborText('none')],
      [cborText('attStmt'), Buffer.from([0xa0])],
      [cborText('authData'), cborBytes(data)],
    ])
    const client = clientData('webauthn.create', challenge, origin)
    return {
      id: base64url(this.id),
      rawId: base64url(this.id),
      type: 'public-key',
      clientExtensionResults: {},
      response: {
        clientDataJSON: base64url(client),
        attestationObject: base64url(object),
        transports: ['internal'],
      },
    }
  }

  /** The result of `navigator.credentials.get` for these options. */
  get({ challenge, rpId }: Request, origin: string): Assertion {
    this.counter++
    const data = this.#authenticatorData(rpId, present | verified)
    const client = clientData('webauthn.get', challenge, origin)
    const signed = Buffer.concat([data, sha256(client)])
    return {
      id: base64url(this.id),
      rawId: base64url(this.id),
      type: 'public-key',
      clientExtensionResults: {},
      response: {
        clientDataJSON: base64url(client),
        authenticatorData: base64url(data),
        signature: base64url(createSign('sha256').update(signed).sign(this.#key)),
        userHandle: this.#userHandle,
      },
    }
  }

  #authenticatorData(host: string, flags: number): Buffer {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(this.counter)
    return Buffer.concat([sha256(host), Buffer.from([flags]), counter])
  }
}

export interface Assertion {
  id: string
  rawId: string
  type: string
  clientExtensionResults: object
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle: string }
}

function clientData(type: string, challenge: string, origin: string): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }))
}

/** RFC 9053 7.1.1: an EC2 key, P-256, for ES256. */
function coseKey(x: Buffer, y: Buffer): Buffer {
  const [one, three] = [Buffer.from([0x01]), Buffer.from([0x03])]
  return cborMap([
    [one, Buffer.from([0x02])],
    [three, Buffer.from([0x26])],
    [Buffer.from([0x20]), one],
    [Buffer.from([0x21]), cborBytes(x)],
    [Buffer.from([0x22]), cborBytes(y)],
  ])
}

// RFC 8949 3.1: the few types that tests need, each shorter than 64 KiB.
function cborMap(entries: [Buffer, Buffer][]): Buffer {
  return Buffer.concat([Buffer.from([0xa0 | entries.length]), ...entries.flat()])
}

function cborText(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x60 | text.length]), Buffer.from(text)])
}

function cborBytes(bytes: Buffer): Buffer {
  const head = bytes.length < 256 ? [0x58, bytes.length] : [0x59, bytes.length >> 8, bytes.length & 0xff]
  return Buffer.concat([Buffer.from(head), bytes])
}
