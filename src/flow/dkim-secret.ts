// DKIM keys at rest: made, sealed under the secret key together with the name that they belong to, and opened.
import { createPrivateKey, type KeyObject, randomBytes } from 'node:crypto'
import type { SecretBox } from '../base/secret-box.ts'
import { type DkimAlgorithm, generateDkimKey } from '../mailauth/dkim-sign.ts'
import type { DkimKeyRow } from '../store/dkim-keys.ts'

const purpose = 'dkim-key'

/** What a customer's domain signs with: RSA for everybody, Ed25519 for those who know it. */
export const domainAlgorithms: readonly DkimAlgorithm[] = ['rsa-sha256', 'ed25519-sha256']

/** A new key as its row. */
export async function makeDkimKey(
  secretBox: SecretBox,
  name: { domain: string; selector: string; algorithm: DkimAlgorithm },
): Promise<DkimKeyRow> {
  const { privatePem, publicRecord } = await generateDkimKey(name.algorithm)
  return { ...name, publicRecord, sealedKey: secretBox.seal(purpose, privatePem, contextOf(name)) }
}

/** New keys for a customer's domain, under selectors that no other claim on the name has. */
export async function makeDomainKeys(
  secretBox: SecretBox,
  domain: string,
  algorithms: readonly DkimAlgorithm[],
): Promise<DkimKeyRow[]> {
  const suffix = randomBytes(5).toString('hex')
  return await Promise.all(
    algorithms.map((algorithm) => {
      const selector = `ph${algorithm === 'rsa-sha256' ? 'r' : 'e'}-${suffix}`
      return makeDkimKey(secretBox, { domain, selector, algorithm })
    }),
  )
}

export function openDkimKey(secretBox: SecretBox, row: DkimKeyRow): KeyObject {
  return createPrivateKey(secretBox.open(purpose, row.sealedKey, contextOf(row)).toString())
}

function contextOf({ domain, selector }: { domain: string; selector: string }): string {
  return `${selector}._domainkey.${domain}`
}
