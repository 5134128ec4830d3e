// The way back where the secret key is lost: what it sealed is replaced, or marked for its owner to replace.
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
import { operator, recordDeed } from '../audit.ts'
import { makeDomainKeys, sealDkimKey } from './dkim-secret.ts'
import { makeKeyFile, readKeyFile } from './key-file.ts'
import { openOrNull, purposes, requireNoNodes } from './rotate-secret-key.ts'
import { findSealing, openBox, requireSealingKey } from './secret-key.ts'

interface Deps {
  db: Db
  clock: Clock
  /** Where the key is, or will be. */
  file: string
  managedDomain: string
  /** Is told of each step once it is kept. */
  progress(words: string): void
}

export interface Replacement {
  /** Whether the database has another secret key from now on. */
  isNewKey: boolean
  /** Domains with new DKIM keys; the managed one's sign at once, customers' once they are published. */
  domains: string[]
  /** Endpoints that fail until their owners give them a new secret. */
  webhooks: Pick<WebhookRow, 'id' | 'organizationId' | 'url'>[]
  /** Accounts at certificate authorities, which are opened anew, with their certificates. */
  accounts: number
}

/** How many secrets of each kind no key in the file opens; kinds without any are left out. */
export async function countLost({ db, file }: Pick<Deps, 'db' | 'file'>): Promise<Record<string, number>> {
  const keys = (await readKeyFile(file)) ?? []
  const key = findSealing(await readKeyState(db), keys) ?? keys[0]
  const box = key && new SecretBox(key)
  const counts: Record<string, number> = {}
  for (const kind of secretKinds)
    for await (const secret of eachSealed(db, kind))
      if (!box || !openOrNull(box, purposes[kind], secret)) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

/**
 * Takes the key in the file, or makes one, for the key of the database, and replaces what that cannot open. Broken off, it
 * goes on when run again. Refuses while a node runs, which still has the key.
 */
export async function replaceSecretKey(deps: Deps): Promise<Replacement> {
  const { db, progress } = deps
  await requireNoNodes(db)
  const { box, isNewKey } = await settleKey(deps)
  const replaced: Replacement = { isNewKey, domains: [], webhooks: [], accounts: 0 }
  for (const kind of secretKinds)
    for await (const secret of eachSealed(db, kind))
      if (!openOrNull(box, purposes[kind], secret)) await replaceOne(deps, box, { kind, secret, replaced })
  replaced.domains = [...new Set(replaced.domains)]
  progress('what the lost key had sealed is replaced')
  return replaced
}

/** The key by which the database goes from now on; what was sealed under lost ones is told apart by not opening. */
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
    await recordDeed(tx, null, operator, { action: 'secret.replaced', subject: 'secret key', at })
  })
  progress('it is the key of the database from now on')
  return { box, isNewKey: true }
}

interface Lost {
  kind: SecretKind
  secret: SealedSecret
  replaced: Replacement
}

/** Replaces one lost secret, in a commit of its own, and notes it. */
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
      // Of an endpoint that has lost both it is told once.
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

/** Puts a new key in the place of the lost one, unless that signed no more; returns whose it is. */
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
