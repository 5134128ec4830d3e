// Operators' actions on a certificate: revoke it, export it, or retry refused orders and names at once.
import { revokeCertificate } from '../../acme/revoke-certificate.ts'
import { ServiceError } from '../../base/errors.ts'
import type { SecretBox } from '../../base/secret-box.ts'
import type { Db } from '../../postgres/db.ts'
import {
  type AcmeAccountRow,
  clearOrders,
  deleteCertificate,
  findAcmeAccount,
  type StoredCertificate,
} from '../../store/domains/certificates.ts'
import { openAccountKey, openCertificateKey } from '../secrets/certificate-secret.ts'

/** Revokes and deletes the certificate. Nodes then order another one with a new key. Returns the revoked certificate. */
export async function revokeStored(
  { db, secretBox }: { db: Db; secretBox: SecretBox },
  directory: string,
): Promise<StoredCertificate> {
  const account = await requireAccount(db, directory)
  const { certificate } = account
  if (!certificate) throw new ServiceError('not_found', 'there is no certificate from this authority')
  const key = openAccountKey(secretBox, account)
  const reason = await revokeCertificate({ directory, key }, certificate.chain)
  if (reason !== null)
    throw new ServiceError('unavailable', `the authority did not revoke the certificate: ${reason}`)
  await deleteCertificate(db.writer, directory, certificate.issuedAt)
  return certificate
}

/** Returns the certificate with its chain, and then its private key, as one PEM file. */
export async function exportStored(
  { db, secretBox }: { db: Db; secretBox: SecretBox },
  directory: string,
): Promise<string> {
  const { certificate } = await requireAccount(db, directory)
  if (!certificate) throw new ServiceError('not_found', 'there is no certificate from this authority')
  const key = openCertificateKey(secretBox, certificate)
  return [certificate.chain, key].map((pem) => `${pem.trim()}\n`).join('')
}

/** Allows the next order at once, for all names, whatever failed before. */
export async function retryOrders({ db }: { db: Db }, directory: string): Promise<void> {
  await requireAccount(db, directory)
  await clearOrders(db.writer, directory)
}

async function requireAccount(db: Db, directory: string): Promise<AcmeAccountRow> {
  const account = await findAcmeAccount(db, directory)
  if (account) return account
  throw new ServiceError(
    'not_found',
    `no certificate has been ordered from ${directory} yet; the running service orders one automatically`,
  )
}
