// Keeps a certificate from an authority in the store: orders and renews it, and omits names that cannot be validated.
import { generateKeyPair, X509Certificate } from 'node:crypto'
import { promisify } from 'node:util'
import { type Ordered, orderCertificate } from '../../acme/order-certificate.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Db } from '../../postgres/db.ts'
import {
  type AcmeAccountRow,
  deleteChallenges,
  findAcmeAccount,
  insertAcmeAccount,
  insertChallenge,
  lockOrders,
  recordOrderBegun,
  recordOrderEnded,
  recordOrderFailed,
  type StoredCertificate,
} from '../../store/domains/certificates.ts'
import { openAccountKey, sealAccountKey, sealCertificateKey } from '../secrets/certificate-secret.ts'
import { requireSealingKey } from '../secrets/secret-key.ts'
import { afterEnd, afterFailure, decideOrder, followRefusals, isWorthOrdering } from './decide-order.ts'
import type { WantedNames } from './wanted-names.ts'

export interface CertificateOrdersDeps {
  db: Db
  clock: Clock
  log: Log
  secretBox: SecretBox
  /** The URL of the authority's directory, and the address for its mail. */
  authority: { directory: string; email: string }
  names: Pick<WantedNames, 'list'>
  /** Called when there is a new certificate. */
  wake(): void
  stop: AbortSignal
}

/** Longer than any order takes. */
const challengeMs = 3_600_000
const orderMs = 10 * 60_000

/** Places due orders. If several nodes call this together, only one orders. */
export async function orderDue(deps: CertificateOrdersDeps): Promise<void> {
  if (!(await findDue(deps))) return
  const lock = await lockOrders(deps.db)
  if (!lock) return
  try {
    // Another node may have ordered it before we got the lock.
    const due = await findDue(deps)
    if (due) await order(deps, due)
  } finally {
    await deleteChallenges(deps.db.writer).catch(() => {}) // they expire
    lock.release()
  }
}

interface Due {
  account: AcmeAccountRow
  names: string[]
  own: readonly string[]
}

async function findDue(deps: CertificateOrdersDeps): Promise<Due | null> {
  const account = await openAccount(deps)
  const now = deps.clock.now()
  if (account.retryAt && account.retryAt > now) return null
  const wanted = await deps.names.list(account.certificate?.names ?? [])
  const names = decideOrder(account, wanted, now)
  return names && { account, names, own: wanted.own }
}

/** Stores the account's key before the authority sees it. So a node that takes over after a crash uses the same account. */
async function openAccount({
  db,
  clock,
  secretBox,
  authority,
}: CertificateOrdersDeps): Promise<AcmeAccountRow> {
  const { directory } = authority
  const known = await findAcmeAccount(db, directory)
  if (known) return known
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  await db.transaction(async (tx) => {
    await requireSealingKey(tx, secretBox)
    const row = { directory, sealedKey: sealAccountKey(secretBox, directory, key) }
    await insertAcmeAccount(tx, row, clock.now())
  })
  return (await findAcmeAccount(db, directory))!
}

async function order(deps: CertificateOrdersDeps, { account, names, own }: Due): Promise<void> {
  const { db, clock, log, secretBox, authority, stop } = deps
  const { directory } = authority
  const failures = account.failures + 1
  const retryAt = afterFailure(failures, clock.now())
  await recordOrderBegun(db.writer, { directory, failures }, retryAt)
  log.info({ directory, names }, 'certificate order started')
  const ordered = await orderCertificate(
    {
      account: { directory, key: openAccountKey(secretBox, account) },
      email: authority.email,
      publish: (token, keyAuthorization) =>
        insertChallenge(db.writer, { token, keyAuthorization }, new Date(clock.nowMs() + challengeMs)),
      stop: AbortSignal.any([stop, AbortSignal.timeout(orderMs)]),
    },
    names,
    (left) => isWorthOrdering(account.certificate, left, clock.now()),
  )
  await record(deps, { account: { ...account, failures, retryAt }, names, own }, ordered)
}

async function record(
  deps: CertificateOrdersDeps,
  { account, names, own }: Due,
  ordered: Ordered,
): Promise<void> {
  const { db, clock, log, wake } = deps
  const { directory, failures, retryAt } = account
  const now = clock.now()
  if (ordered.status === 'failed') {
    // Records refused names even after a failed order. Otherwise a customer with more refused names than one order omits
    // could keep other customers' names out for good.
    const lost = ordered.refused.filter(({ name }) => !own.includes(name))
    const refusals = followRefusals(
      account.refusals,
      lost.map(({ name }) => name),
      lost,
      now,
    )
    await recordOrderFailed(db.writer, directory, { fault: ordered.reason, refusals })
    log.warn({ directory, failures, retryAt, reason: ordered.reason }, 'certificate order failed')
    return
  }
  for (const { name, reason } of ordered.refused)
    log.warn({ directory, name, reason }, 'name left out of the certificate')
  const refusals = followRefusals(account.refusals, names, ordered.refused, now)
  const certificate = await db.transaction(async (tx) => {
    await requireSealingKey(tx, deps.secretBox)
    const certificate = ordered.status === 'issued' ? storedOf(deps, ordered) : null
    await recordOrderEnded(tx, directory, { certificate, refusals, retryAt: afterEnd(now) })
    return certificate
  })
  if (!certificate) return
  const { names: issuedNames, expiresAt } = certificate
  log.info({ directory, names: issuedNames, expiresAt }, 'certificate issued')
  wake()
}

/** The row to store, with the names and the expiry from the certificate itself. */
function storedOf(
  { secretBox, clock }: CertificateOrdersDeps,
  { chain, key }: { chain: string; key: string },
): StoredCertificate {
  const certificate = new X509Certificate(chain)
  const names = [...(certificate.subjectAltName ?? '').matchAll(/DNS:([^,\s]+)/g)].map(([, name]) => name!)
  return {
    chain,
    names,
    sealedCertificateKey: sealCertificateKey(secretBox, chain, key),
    issuedAt: clock.now(),
    expiresAt: new Date(certificate.validTo),
  }
}
