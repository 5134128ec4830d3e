// The private keys of the ACME account and of the certificate at rest, each sealed together with its owner.
import type { SecretBox } from '../../base/secret-box.ts'
import type { AcmeAccountRow, StoredCertificate } from '../../store/domains/certificates.ts'

export const accountPurpose = 'acme-account-key'
export const certificatePurpose = 'certificate-key'

/** Seals the account's key (PEM). */
export function sealAccountKey(secretBox: SecretBox, directory: string, key: string): Buffer {
  return secretBox.seal(accountPurpose, key, directory)
}

export function openAccountKey(
  secretBox: SecretBox,
  row: Pick<AcmeAccountRow, 'directory' | 'sealedKey'>,
): string {
  return secretBox.open(accountPurpose, row.sealedKey, row.directory).toString()
}

/** Seals the key (PEM) of a certificate. */
export function sealCertificateKey(secretBox: SecretBox, chain: string, key: string): Buffer {
  return secretBox.seal(certificatePurpose, key, chain)
}

export function openCertificateKey(
  secretBox: SecretBox,
  { chain, sealedCertificateKey }: Pick<StoredCertificate, 'chain' | 'sealedCertificateKey'>,
): string {
  return secretBox.open(certificatePurpose, sealedCertificateKey, chain).toString()
}
