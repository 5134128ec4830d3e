// Which key records hold a key, and why others do not.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { readKeyRecord } from './key-record.ts'

function rsa(modulusLength: number, publicExponent = 65537) {
  return generateKeyPairSync('rsa', { modulusLength, publicExponent }).publicKey
}
const publicKey = rsa(1024)
const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
const pkcs1 = publicKey.export({ type: 'pkcs1', format: 'der' }).toString('base64')
const short = rsa(1016).export({ type: 'spki', format: 'der' }).toString('base64')
const ed25519 = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' })
const ed25519Bytes = ed25519.subarray(-32).toString('base64')
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
  type: 'spki',
  format: 'der',
})
// The modulus of the key above with an exponent of the same length.
const numbers = Buffer.concat([
  Buffer.from(pkcs1, 'base64').subarray(3, -5),
  Buffer.from('028181', 'hex'),
  Buffer.alloc(0x81, 0x55),
])
const slow = Buffer.concat([Buffer.from([0x30, 0x82, numbers.length >> 8, numbers.length & 255]), numbers])

const records: [string, string, string][] = [
  ['of RSA', `v=DKIM1; k=rsa; p=${spki}`, 'rsa 1024'],
  ['with the bare key of RSA', `v=DKIM1; p=${pkcs1}`, 'rsa 1024'],
  ['of nothing but a key', `p=${spki}`, 'rsa 1024'],
  ['with spaces in the key', `v=DKIM1; p=${spki.replace(/.{20}/g, '$& ')};`, 'rsa 1024'],
  ['with g=, notes and unknown tags', `v=DKIM1; g=; n=a b c; u=1; p=${spki}`, 'rsa 1024'],
  ['for e-mail, with SHA-256', `v=DKIM1; h=sha1:sha256; s=tlsrpt:email; p=${spki}`, 'rsa 1024'],
  ['in testing', `v=DKIM1; t=y; p=${spki}`, 'rsa 1024 testing'],
  ['strict, in testing', `v=DKIM1; t=s:y:z; p=${spki}`, 'rsa 1024 testing strict'],
  ['of Ed25519', `v=DKIM1; k=ed25519; p=${ed25519Bytes}`, 'ed25519 256'],
  ['revoked', 'v=DKIM1; p=', 'permerror key revoked'],
  ['without a key', 'v=DKIM1; k=rsa', 'permerror key syntax error: no p='],
  ['of another version', `v=DKIM2; p=${spki}`, 'permerror not a DKIM key record'],
  ['with v= not in front', `p=${spki}; v=DKIM1`, 'permerror not a DKIM key record'],
  ['of something else', 'v=spf1 -all', 'permerror not a DKIM key record'],
  ['of words', 'some words', 'permerror key syntax error'],
  ['of another service', `s=web; p=${spki}`, 'permerror key not applicable: s= is without email'],
  ['of SHA-1 alone', `h=sha1; p=${spki}`, 'permerror inappropriate hash algorithm: h= is without sha256'],
  ['of an unknown kind', `k=x; p=${spki}`, 'permerror no key in p= of the kind that k= names'],
  [
    'of RSA under the name of Ed25519',
    `k=ed25519; p=${spki}`,
    'permerror no key in p= of the kind that k= names',
  ],
  ['of an elliptic curve', `p=${ec.toString('base64')}`, 'permerror no key in p= of the kind that k= names'],
  ['of noise', 'p=QUJD', 'permerror no key in p= of the kind that k= names'],
  ['of a key that is too short', `p=${short}`, 'policy an RSA key of 1016 bits'],
  ['of a slow key', `p=${slow.toString('base64')}`, 'policy an RSA key that is slow to verify with'],
  ['longer than 8 KiB', `p=${spki}; n=${'x'.repeat(8192)}`, 'permerror the key record is longer than 8 KiB'],
]

test(`${records.length} key records are read or refused`, () => {
  for (const [what, text, wanted] of records) {
    for (const read of [readKeyRecord(text), readKeyRecord(text)]) {
      const found =
        read.status === 'refused'
          ? `${read.refusal.result} ${read.refusal.reason}`
          : `${read.tags.type} ${read.tags.sizeBits}${read.tags.isTesting ? ' testing' : ''}${read.tags.isStrict ? ' strict' : ''}`
      assert.equal(found, wanted, what)
    }
  }
})
