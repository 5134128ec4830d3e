// The keys that sign: the deployment's own domain's, made at the first start, sealed at rest, parsed once.
import type { Clock } from '../../base/clock.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { DkimKey } from '../../mailauth/dkim-sign.ts'
import type { Db } from '../../postgres/db.ts'
import { insertDkimKey, listDkimKeys } from '../../store/dkim-keys.ts'
import { makeDkimKey, openDkimKey } from '../dkim-secret.ts'

/** The domain's signing keys; the first to ask makes one. */
export async function loadSigningKeys(
  deps: { db: Db; clock: Clock; secretBox: SecretBox },
  domain: string,
): Promise<DkimKey[]> {
  const { db, secretBox } = deps
  let rows = await listDkimKeys(db, domain)
  if (rows.length === 0) {
    await makeKey(deps, domain)
    rows = await listDkimKeys(db, domain)
  }
  return rows.map((row) => {
    const { selector, algorithm } = row
    return { domain, selector, algorithm, privateKey: openDkimKey(secretBox, row) }
  })
}

async function makeKey(
  { db, clock, secretBox }: { db: Db; clock: Clock; secretBox: SecretBox },
  domain: string,
): Promise<void> {
  const row = await makeDkimKey(secretBox, { domain, selector: 'ph1', algorithm: 'rsa-sha256' })
  await db.transaction((tx) => insertDkimKey(tx, row, clock.now()))
}

/** What is to be published for the domain: the names and values of its TXT records. */
export async function listSigningRecords(db: Db, domain: string): Promise<{ name: string; value: string }[]> {
  const rows = await listDkimKeys(db, domain)
  return rows.map(({ selector, publicRecord }) => ({
    name: `${selector}._domainkey.${domain}`,
    value: publicRecord,
  }))
}
