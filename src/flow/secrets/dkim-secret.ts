// DKIM keys at rest: made, sealed under the secret key together with their name, and opened.
import { createPrivateKey, type KeyObject, randomBytes } from 'node:crypto'
import type { SecretBox } from '../../base/secret-box.ts'
import { type DkimAlgorithm, generateDkimKey } from '../../mailauth/dkim-sign.ts'
import type { DkimKeyRow, KeyInLifeRow } from '../../store/domains/dkim-keys.ts'

export const dkimPurpose = 'dkim-key'

/** A domain's algorithms: RSA for all verifiers, Ed25519 for those that support it. */
export const domainAlgorithms: readonly DkimAlgorithm[] = ['rsa-sha256', 'ed25519-sha256']

/** Limits the list if keys are rotated repeatedly within the days that retired keys stay listed. */
export const maxRetiredKeys = 8

/** How long a retired key stays listed, and must stay published. */
export const listedRetiredMs = 7 * 86_400_000

interface KeyName {
  domain: string
  selector: string
  algorithm: DkimAlgorithm
}

/** A new key that is not stored yet. */
export interface UnsealedKey extends KeyName {
  privatePem: string
  publicRecord: string
}

export async function makeDkimKey(name: KeyName): Promise<UnsealedKey> {
  return { ...name, ...(await generateDkimKey(name.algorithm)) }
}

/** The key as a row, which must be stored in a transaction that calls `requireSealingKey`. */
export function sealDkimKey(secretBox: SecretBox, { privatePem, ...key }: UnsealedKey): DkimKeyRow {
  return { ...key, sealedKey: secretBox.seal(dkimPurpose, privatePem, contextOf(key)) }
}

/** The algorithms for which a rotation makes new keys: those without a key that waits to be published. */
export function algorithmsToRotate(
  keys: readonly Pick<KeyInLifeRow, 'state' | 'algorithm'>[],
): DkimAlgorithm[] {
  const waiting = keys.filter(({ state }) => state === 'pending')
  return domainAlgorithms.filter((algorithm) => waiting.every((key) => key.algorithm !== algorithm))
}

/** New keys for a domain, under selectors that no other claim on the name uses. */
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
