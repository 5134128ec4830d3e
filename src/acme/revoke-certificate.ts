// Asks an authority to revoke a certificate that it issued to an account.
import { type Account, createAcmeClient, reasonOf } from './client.ts'

/** Revokes the certificate (PEM). Returns null if it is revoked now, else the reason. Never rejects. */
export async function revokeCertificate(account: Account, certificate: string): Promise<string | null> {
  try {
    const client = await createAcmeClient(account)
    await client.createAccount({ onlyReturnExisting: true })
    await client.revokeCertificate(certificate)
    return null
  } catch (error) {
    // The client throws for each refusal by the authority.
    const reason = reasonOf(error)
    // RFC 8555 7.6: `alreadyRevoked`, passed on by the client as words only. An interrupted revocation is thus complete.
    return /already (been )?revoked/i.test(reason) ? null : reason
  }
}
