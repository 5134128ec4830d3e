// DKIM keys at rest: made, sealed under the secret key together with the name that they belong to, and opened.
import { createPrivateKey, type KeyObject, randomBytes } from 'node:crypto'
import type { SecretBox } from '../../base/secret-box.ts'
import { type DkimAlgorithm, generateDkimKey } from '../../mailauth/dkim-sign.ts'
import type { DkimKeyRow, KeyInLifeRow } from '../../store/domains/dkim-keys.ts'

export const dkimPurpose = 'dkim-key'

/** What a domain signs with: RSA for everybody, Ed25519 for those who know it. */
export const domainAlgorithms: readonly DkimAlgorithm[] = ['rsa-sha256', 'ed25519-sha256']

/** Whoever rotates again and again within the days that retired keys stay listed meets an end to the list. */
export const maxRetiredKeys = 8

/** For how long a key stays listed, and is to stay published, once another signs in its place. */
export const listedRetiredMs = 7 * 86_400_000

interface KeyName {
  domain: string
  selector: string
  algorithm: DkimAlgorithm
}

/** A new key that is nowhere yet. */
export interface UnsealedKey extends KeyName {
  privatePem: string
  publicRecord: string
}

export async function makeDkimKey(name: KeyName): Promise<UnsealedKey> {
  return { ...name, ...(await generateDkimKey(name.algorithm)) }
}

/** The key as its row, to be stored in the transaction that has `requireSealingKey`. */
export function sealDkimKey(secretBox: SecretBox, { privatePem, ...key }: UnsealedKey): DkimKeyRow {
  return { ...key, sealedKey: secretBox.seal(dkimPurpose, privatePem, contextOf(key)) }
}

/** The algorithms of which no key waits to be published: what a rotation makes new keys of. */
export function algorithmsToRotate(
  keys: readonly Pick<KeyInLifeRow, 'state' | 'algorithm'>[],
): DkimAlgorithm[] {
  const waiting = keys.filter(({ state }) => state === 'pending')
  return domainAlgorithms.filter((algorithm) => waiting.every((key) => key.algorithm !== algorithm))
}

/** New keys for a domain, under selectors that no other claim on the name has. */
export async function makeDomainKeys(
  domain: string,
  algorithms: readonly DkimAlgorithm[],
): Promise<UnsealedKey[]> {
  const suffix = randomBytes(5).toString('hex')
  return await Promise.all(
    algorithms.map((algorithm) => {
      const selector = `ph${algorithm === 'rsa-sha256' ? 'r' : 'e'}-${suffix}`
      return makeDkimKey({ domain, selector, algorithm })
    }),
  )
}

export function openDkimKey(secretBox: SecretBox, row: DkimKeyRow): KeyObject {
  return createPrivateKey(secretBox.open(dkimPurpose, row.sealedKey, contextOf(row)).toString())
}

function contextOf({ domain, selector }: { domain: string; selector: string }): string {
  return `${selector}._domainkey.${domain}`
}
