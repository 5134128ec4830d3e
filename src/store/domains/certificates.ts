// Accounts at certificate authorities, each with the certificate of all nodes and the challenges of its orders.
import { Arguments } from '../../postgres/arguments.ts'
import type { Db, Queryable, Writer } from '../../postgres/db.ts'
import { holdLock, lockClasses } from '../../postgres/locks.ts'

/** A name that the certificate lacks, and when it is retried (ISO 8601). */
export interface NameRefusal {
  name: string
  reason: string
  failures: number
  retryAt: string
}

/** A certificate as it is stored. */
export interface StoredCertificate {
  /** PEM, the certificate itself first. */
  chain: string
  sealedCertificateKey: Buffer
  names: string[]
  issuedAt: Date
  expiresAt: Date
}

export interface AcmeAccountRow {
  /** The URL of the authority's directory. */
  directory: string
  sealedKey: Buffer
  certificate: StoredCertificate | null
  /** Failed orders in a row. */
  failures: number
  /** No order is made before this time. */
  retryAt: Date | null
  fault: string | null
  refusals: NameRefusal[]
}

type StoredRow = Omit<AcmeAccountRow, 'certificate'> & {
  [Key in keyof StoredCertificate]: StoredCertificate[Key] | null
}

const columns = `directory, sealed_key as "sealedKey", chain, sealed_certificate_key as "sealedCertificateKey", names,
  issued_at as "issuedAt", expires_at as "expiresAt", failures, retry_at as "retryAt", fault, refusals`

export async function findAcmeAccount(db: Queryable, directory: string): Promise<AcmeAccountRow | null> {
  const [row] = await db.query<StoredRow>(`select ${columns} from acme_account where directory = $1`, [
    directory,
  ])
  if (!row) return null
  const { chain, sealedCertificateKey, names, issuedAt, expiresAt, ...account } = row
  const hasCertificate = chain !== null && sealedCertificateKey && names && issuedAt && expiresAt
  return {
    ...account,
    certificate: hasCertificate ? { chain, sealedCertificateKey, names, issuedAt, expiresAt } : null,
  }
}

/** Returns when the certificate was issued, so that a node sees a new one; null if there is none. */
export async function findIssuedAt(db: Queryable, directory: string): Promise<Date | null> {
  const [row] = await db.query<{ issuedAt: Date | null }>(
    'select issued_at as "issuedAt" from acme_account where directory = $1 and chain is not null',
    [directory],
  )
  return row?.issuedAt ?? null
}

/** Inserts the account's key, unless another node was first. */
export async function insertAcmeAccount(
  db: Writer,
  { directory, sealedKey }: Pick<AcmeAccountRow, 'directory' | 'sealedKey'>,
  at: Date,
): Promise<void> {
  await db.query(
    'insert into acme_account (directory, sealed_key, created_at) values ($1, $2, $3) on conflict do nothing',
    [directory, sealedKey, at],
  )
}

/** Counts an order before it is made, so that an order that crashes its process counts too. */
export async function recordOrderBegun(
  db: Writer,
  { directory, failures }: Pick<AcmeAccountRow, 'directory' | 'failures'>,
  retryAt: Date,
): Promise<void> {
  await db.query('update acme_account set failures = $2, retry_at = $3 where directory = $1', [
    directory,
    failures,
    retryAt,
  ])
}

/** Records a finished order: with a certificate, or without, if none was needed. */
export async function recordOrderEnded(
  db: Writer,
  directory: string,
  ended: { certificate: StoredCertificate | null; refusals: NameRefusal[]; retryAt: Date },
): Promise<void> {
  const { certificate, refusals, retryAt } = ended
  const set = {
    ...(certificate && {
      chain: certificate.chain,
      sealed_certificate_key: certificate.sealedCertificateKey,
      names: certificate.names,
      issued_at: certificate.issuedAt,
      expires_at: certificate.expiresAt,
    }),
    failures: 0,
    fault: null,
    retry_at: retryAt,
    refusals: JSON.stringify(refusals),
  }
  const named = new Arguments({ directory, ...set })
  const assigned = named.assigned(Object.keys(set).join(' '))
  await db.query(
    `update acme_account set ${assigned} where directory = ${named.parameter('directory')}`,
    named.values,
  )
}

/** Records why an order failed, and which names the next order leaves out. Its back-off was recorded when it began. */
export async function recordOrderFailed(
  db: Writer,
  directory: string,
  { fault, refusals }: { fault: string; refusals: NameRefusal[] },
): Promise<void> {
  await db.query('update acme_account set fault = $2, refusals = $3 where directory = $1', [
    ...[directory, fault, JSON.stringify(refusals)],
  ])
}

/** Clears back-offs and refusals, so that the next order is made at once. */
export async function clearOrders(db: Writer, directory: string): Promise<void> {
  await db.query(
    `update acme_account set failures = 0, retry_at = null, fault = null, refusals = '[]' where directory = $1`,
    [directory],
  )
}

/** Deletes the certificate issued at that time, and allows a new order at once. */
export async function deleteCertificate(db: Writer, directory: string, issuedAt: Date): Promise<void> {
  await db.query(
    `update acme_account set chain = null, sealed_certificate_key = null, names = '{}', issued_at = null, expires_at = null,
      failures = 0, retry_at = null, fault = null where directory = $1 and issued_at = $2`,
    [directory, issuedAt],
  )
}

/**
 * Deletes an account and its certificate, by its directory or the certificate's chain. The next order opens a new account.
 */
export async function deleteAcmeAccount(db: Writer, directoryOrChain: string): Promise<void> {
  await db.query('delete from acme_account where directory = $1 or chain = $1', [directoryOrChain])
}

/** Takes the lock for ordering certificates; null while another node has it. The lock ends with the process. */
export async function lockOrders(db: Db): Promise<{ release(): void } | null> {
  return await holdLock(db, lockClasses.certificate)
}

export async function insertChallenge(
  db: Writer,
  { token, keyAuthorization }: { token: string; keyAuthorization: string },
  expiresAt: Date,
): Promise<void> {
  await db.query(
    `insert into acme_challenge (token, key_authorization, expires_at) values ($1, $2, $3)
    on conflict (token) do update set key_authorization = excluded.key_authorization, expires_at = excluded.expires_at`,
    [token, keyAuthorization, expiresAt],
  )
}

export async function deleteChallenges(db: Writer): Promise<void> {
  await db.query('delete from acme_challenge')
}

/** Returns the answer for a token at this time; null if there is none. */
export async function findKeyAuthorization(db: Queryable, token: string, at: Date): Promise<string | null> {
  const [row] = await db.query<{ keyAuthorization: string }>(
    'select key_authorization as "keyAuthorization" from acme_challenge where token = $1 and expires_at > $2',
    [token, at],
  )
  return row?.keyAuthorization ?? null
}
