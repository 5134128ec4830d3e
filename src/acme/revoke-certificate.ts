// Has an authority revoke a certificate that it issued to an account.
import { type Account, createAcmeClient, reasonOf } from './client.ts'

/** Why the certificate (PEM) could not be revoked; null where it is revoked now. Never rejects. */
export async function revokeCertificate(account: Account, certificate: string): Promise<string | null> {
  try {
    const client = await createAcmeClient(account)
    await client.createAccount({ onlyReturnExisting: true })
    await client.revokeCertificate(certificate)
    return null
  } catch (error) {
    // The client answers whatever the authority says with an exception.
    const reason = reasonOf(error)
    // RFC 8555 7.6: `alreadyRevoked`, of which the client leaves us the words; a revocation that was broken off goes on.
    return /already (been )?revoked/i.test(reason) ? null : reason
  }
}
