// Reads the public keys of signers from TXT records (RFC 6376 3.6.1, RFC 8463), each parsed once.
import { createPublicKey, type KeyObject } from 'node:crypto'
import { BoundedMap } from '../../base/bounded-map.ts'
import type { Read, SignatureRefusal } from './signature.ts'
import { decodeFoldedBase64, parseTagList, type TagList, withoutFolding } from './tag-list.ts'

export interface DkimKeyRecord {
  type: 'rsa' | 'ed25519'
  publicKey: KeyObject
  /** Size of the modulus of an RSA key. 256 for an Ed25519 key. */
  sizeBits: number
  /** t=y: the domain is only testing DKIM. */
  isTesting: boolean
  /** t=s: the domain of i= must equal that of d=. */
  isStrict: boolean
}

const maxRecordLength = 8 * 1024
const maxCachedRecords = 2000

/** Parsed keys by their text. Measured: making a key from its bytes takes 30 µs, longer than verifying with it (21). */
const cache = new BoundedMap<string, Read<DkimKeyRecord>>(maxCachedRecords)

/**
 * The key of one TXT record, its strings joined. Refused with `permerror`, or with `policy` if the key must not be
 * trusted.
 */
export function readKeyRecord(text: string): Read<DkimKeyRecord> {
  if (text.length > maxRecordLength) return refuse('the key record is longer than 8 KiB')
  const cached = cache.get(text)
  if (cached !== undefined) return cached
  const read = parseKeyRecord(text)
  cache.set(text, read)
  return read
}

function parseKeyRecord(text: string): Read<DkimKeyRecord> {
  const tags = parseTagList(text)
  if (tags === null) return refuse('key syntax error')
  const value = (name: string) => tags.get(name)?.value
  // RFC 6376 3.6.1: v= is optional, but if present it comes first and is DKIM1.
  const version = value('v')
  if (version !== undefined && (version !== 'DKIM1' || tags.keys().next().value !== 'v'))
    return refuse('not a DKIM key record')
  // RFC 6376 3.6.1: h= lists the hashes that the key may be used with, s= the services.
  if (!allows(tags, 'h', ['sha256'])) return refuse('inappropriate hash algorithm: h= is without sha256')
  if (!allows(tags, 's', ['*', 'email'])) return refuse('key not applicable: s= is without email')
  const letters = value('p')
  if (letters === undefined) return refuse('key syntax error: no p=')
  // RFC 6376 3.6.1: an empty p= means that the key was revoked.
  if (letters === '') return refuse('key revoked')
  const bytes = decodeFoldedBase64(letters)
  if (bytes === null) return refuse('key syntax error in p=')
  const type = value('k') ?? 'rsa'
  const key = type === 'rsa' ? readRsaKey(bytes) : type === 'ed25519' ? readEd25519Key(bytes) : null
  if (key === null) return refuse('no key in p= of the kind that k= names')
  return 'reason' in key
    ? { status: 'refused', refusal: key }
    : { status: 'ok', tags: { ...key, ...flags(tags) } }
}

function refuse(reason: string): { status: 'refused'; refusal: SignatureRefusal } {
  return { status: 'refused', refusal: { result: 'permerror', reason } }
}

function listOf(tags: TagList, name: string): string[] | null {
  const value = tags.get(name)?.value
  return value === undefined ? null : withoutFolding(value).split(':')
}

function allows(tags: TagList, name: string, wanted: readonly string[]): boolean {
  return listOf(tags, name)?.some((one) => wanted.includes(one)) ?? true
}

function flags(tags: TagList): Pick<DkimKeyRecord, 'isTesting' | 'isStrict'> {
  // RFC 6376 3.6.1: unknown flags are ignored.
  const given = listOf(tags, 't') ?? []
  return { isTesting: given.includes('y'), isStrict: given.includes('s') }
}

type Key = Pick<DkimKeyRecord, 'type' | 'publicKey' | 'sizeBits'>

const maxModulusBits = 4096
const maxExponent = 2n ** 32n

function readRsaKey(bytes: Buffer): Key | SignatureRefusal | null {
  const publicKey = importRsaKey(bytes)
  if (publicKey === null) return null
  const { modulusLength = 0, publicExponent = 0n } = publicKey.asymmetricKeyDetails ?? {}
  // RFC 8301 3.2: keys under 1024 bits are not trusted. Support for keys over 4096 bits is optional.
  if (modulusLength < 1024) return { result: 'policy', reason: `an RSA key of ${modulusLength} bits` }
  // Against keys made to be slow: a large modulus, or an exponent of the same length, costs milliseconds a signature.
  if (modulusLength > maxModulusBits || publicExponent > maxExponent)
    return { result: 'policy', reason: 'an RSA key that is slow to verify with' }
  return { type: 'rsa', publicKey, sizeBits: modulusLength }
}

/** RFC 6376 3.6.1 names RSAPublicKey and shows SubjectPublicKeyInfo (erratum 3017). Both are in use. */
function importRsaKey(key: Buffer): KeyObject | null {
  for (const type of ['spki', 'pkcs1'] as const) {
    try {
      const publicKey = createPublicKey({ key, format: 'der', type })
      if (publicKey.asymmetricKeyType === 'rsa') return publicKey
    } catch {
      // The bytes are no RSA key of this form. A stranger may publish such bytes, so this is an ordinary result.
    }
  }
  return null
}

function readEd25519Key(bytes: Buffer): Key | null {
  // RFC 8463 4.2: p= holds the 32 bytes of the key itself.
  if (bytes.length !== 32) return null
  const key = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }
  return { type: 'ed25519', publicKey: createPublicKey({ key, format: 'jwk' }), sizeBits: 256 }
}
