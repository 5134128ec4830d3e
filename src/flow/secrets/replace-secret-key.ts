// Recovery after the loss of the secret key: replaces the secrets that it sealed, or marks them for their owners to replace.
import type { Clock } from '../../base/clock.ts'
import { SecretBox } from '../../base/secret-box.ts'
import type { Db, Tx } from '../../postgres/db.ts'
import { deleteAcmeAccount } from '../../store/domains/certificates.ts'
import { hasKeyInUse, insertDkimKey, insertDomainKey, takeDkimKey } from '../../store/domains/dkim-keys.ts'
import { loseSecret, type WebhookRow } from '../../store/events/webhooks.ts'
import { eachSealed, type SealedSecret, type SecretKind, secretKinds } from '../../store/sealed-secrets.ts'
import {
  clearVerifiers,
  insertFormerKey,
  lockKeyState,
  readKeyState,
  writeKeyCheck,
} from '../../store/secret-keys.ts'
import { operator, recordAction } from '../audit.ts'
import { makeDomainKeys, sealDkimKey } from './dkim-secret.ts'
import { makeKeyFile, readKeyFile } from './key-file.ts'
import { openOrNull, requireNoNodes, sealPurposes } from './rotate-secret-key.ts'
import { findSealing, openBox, requireSealingKey } from './secret-key.ts'

interface Deps {
  db: Db
  clock: Clock
  /** The file of the key, which may not exist yet. */
  file: string
  managedDomain: string
  /** Receives a description of each step after its commit. */
  progress(words: string): void
}

export interface Replacement {
  /** Whether the database's secret key changed. */
  isNewKey: boolean
  /** Domains with new DKIM keys. Those of the managed domain sign at once, those of customers once they are published. */
  domains: string[]
  /** Endpoints whose calls fail until their owners set a new secret. */
  webhooks: Pick<WebhookRow, 'id' | 'organizationId' | 'url'>[]
  /** Accounts at certificate authorities that were deleted with their certificates. They will be opened anew. */
  accounts: number
}

/** Counts the secrets of each kind that no key in the file opens. Omits kinds without any. */
export async function countLost({ db, file }: Pick<Deps, 'db' | 'file'>): Promise<Record<string, number>> {
  const keys = (await readKeyFile(file)) ?? []
  const key = findSealing(await readKeyState(db), keys) ?? keys[0]
  const box = key && new SecretBox(key)
  const counts: Record<string, number> = {}
  for (const kind of secretKinds)
    for await (const secret of eachSealed(db, kind))
      if (!box || !openOrNull(box, sealPurposes[kind], secret)) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/**
 * Sets the database's key to the key in the file, or to a new one. Replaces all secrets that it does not open. If
 * interrupted, it resumes when run again. Refuses while a node runs, as the node still has the old key.
 */
export async function replaceSecretKey(deps: Deps): Promise<Replacement> {
  const { db, progress } = deps
  await requireNoNodes(db)
  const { box, isNewKey } = await settleKey(deps)
  const replaced: Replacement = { isNewKey, domains: [], webhooks: [], accounts: 0 }
  for (const kind of secretKinds)
    for await (const secret of eachSealed(db, kind))
      if (!openOrNull(box, sealPurposes[kind], secret))
        await replaceOne(deps, box, { kind, secret, replaced })
  replaced.domains = [...new Set(replaced.domains)]
  progress('replaced the secrets that the lost key sealed')
  return replaced
}

/** Settles the database's key. Secrets sealed under a lost key are recognized because this key does not open them. */
async function settleKey(deps: Deps): Promise<{ box: SecretBox; isNewKey: boolean }> {
  const { db, clock, file, progress } = deps
  const state = await readKeyState(db)
  const keys = await readKeyFile(file)
  const own = keys && findSealing(state, keys)
  if (own) return { box: openBox(state, own), isNewKey: false }
  const key = keys?.[0] ?? (await makeKeyFile(file))
  const box = new SecretBox(key)
  progress(`the key is in ${file}`)
  await db.transaction(async (tx) => {
    const { current } = await lockKeyState(tx)
    await requireNoNodes(tx)
    const at = clock.now()
    await clearVerifiers(tx)
    if (current) await insertFormerKey(tx, { check: current, sealedVerifiers: null, at })
    await writeKeyCheck(tx, box.check)
    await recordAction(tx, null, operator, { action: 'secret.replaced', subject: 'secret key', at })
  })
  progress('the database uses this key from now on')
  return { box, isNewKey: true }
}

interface Lost {
  kind: SecretKind
  secret: SealedSecret
  replaced: Replacement
}

/** Replaces one lost secret in its own commit, and records it in `replaced`. */
async function replaceOne(deps: Deps, box: SecretBox, { kind, secret, replaced }: Lost): Promise<void> {
  const { db, clock } = deps
  const { context } = secret
  switch (kind) {
    case 'DKIM key':
      replaced.domains.push(await replaceDkimKey(deps, box, context))
      return
    case 'webhook secret':
    case 'former webhook secret': {
      const webhook = await db.transaction((tx) => loseSecret(tx, context, clock.now()))
      // An endpoint that has lost both secrets is reported once.
      if (webhook && kind === 'webhook secret') replaced.webhooks.push(webhook)
      return
    }
    case 'account key':
    case 'certificate key':
      await deleteAcmeAccount(db.writer, context)
      replaced.accounts++
      return
    case 'verifiers':
      await db.transaction((tx) => clearVerifiers(tx))
  }
}

/** Replaces the lost key with a new one, unless it no longer signed. Returns its domain. */
async function replaceDkimKey(
  { db, clock, managedDomain }: Deps,
  box: SecretBox,
  context: string,
): Promise<string> {
  const [selector = '', domain = ''] = context.split('._domainkey.')
  const made = new Map(
    (await makeDomainKeys(domain, ['rsa-sha256', 'ed25519-sha256'])).map((key) => [key.algorithm, key]),
  )
  await db.transaction(async (tx: Tx) => {
    await requireSealingKey(tx, box)
    const lost = await takeDkimKey(tx, { domain, selector })
    if (!lost || lost.state === 'retired') return
    const { algorithm, domainId, organizationId } = lost
    if (await hasKeyInUse(tx, { domain, domainId }, algorithm)) return
    const sealed = sealDkimKey(box, made.get(algorithm)!)
    if (domainId && organizationId)
      await insertDomainKey(tx, { ...sealed, domainId, organizationId }, clock.now())
    // As at the first start: it signs at once, and the operator publishes it.
    else if (domain === managedDomain) await insertDkimKey(tx, { ...sealed, state: 'active' }, clock.now())
  })
  return domain
}
