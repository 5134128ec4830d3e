// The doctor's check of a certificate ordered by ACME: its names, its expiry, and refused names.
import { X509Certificate } from 'node:crypto'
import { isPublicFor } from '../../acme/public-chain.ts'
import type { Settings } from '../../config/settings.ts'
import { renewalOf } from '../../flow/certificates/decide-order.ts'
import type { Foundation } from '../../foundation.ts'
import { ownHostsOf } from '../../roles/certificate.ts'
import { type AcmeAccountRow, findAcmeAccount } from '../../store/domains/certificates.ts'
import { type Check, failed, ok, warning } from './checks.ts'

const name = 'TLS certificate'
const retryMend = 'fix the cause, then run posthorn certificate retry'

/** Checks the certificate of the configured authority. */
export async function checkOrdered({ db, clock, settings }: Foundation): Promise<Check> {
  return evaluateOrdered(await findAcmeAccount(db, settings.acme!.directory), settings, clock.now())
}

type Facts = Pick<Settings, 'mailHost' | 'publicUrl'>

/** Evaluates the certificate as senders and clients will, and states the remedy. */
export function evaluateOrdered(account: AcmeAccountRow | null, settings: Facts, now: Date): Check {
  const { certificate = null, fault = null, failures = 0, refusals = [] } = account ?? {}
  const orders = failures === 1 ? 'the last order' : `the last ${failures} orders`
  const failing = failures > 0 ? `; ${orders} failed${fault ? `: ${fault}` : ''}` : ''
  const port80 = 'make port 80 of each name lead to POSTHORN_HTTP'
  if (!certificate)
    return failures > 0
      ? failed(
          name,
          `none yet${failing}`,
          `check that this machine reaches the authority, ${port80}, then run posthorn certificate retry`,
        )
      : warning(name, 'none yet: the service orders it by ACME', `start the service, and ${port80}`)
  const { names, expiresAt, chain } = certificate
  const detail = `by ACME, ${names.join(', ')}, until ${expiresAt.toISOString().slice(0, 10)}${failing}`
  if (expiresAt <= now)
    return failed(name, `${detail}: expired`, `${port80}, then run posthorn certificate retry`)
  const missing = ownHostsOf(settings).filter((host) => !new X509Certificate(chain).checkHost(host))
  if (missing.length > 0) return warning(name, `${detail}: not valid for ${missing.join(', ')}`, retryMend)
  const [refused] = refusals
  if (refused) return warning(name, `${detail}, without ${refused.name}: ${refused.reason}`, retryMend)
  // Warns only when two days late, because the authority may be out of order for one day.
  if (now.getTime() - renewalOf(certificate).getTime() > 2 * 86_400_000)
    return warning(name, `${detail}: its renewal is late`, retryMend)
  if (!isPublicFor(chain, settings.mailHost, now))
    return warning(
      name,
      `${detail}: its authority is not a public one that Node knows`,
      'use a public authority for public mail',
    )
  return ok(name, detail)
}
