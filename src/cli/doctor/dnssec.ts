// The doctor's check of DNSSEC, which DANE needs: the resolver must prove a signed name and refuse a broken one.
import type { Settings } from '../../config/settings.ts'
import type { Resolver } from '../../dns/resolver.ts'
import { type Check, failed, ok, skipped, warning } from './checks.ts'

const name = 'DNSSEC'
const wellKnown = { signed: 'ietf.org', broken: 'dnssec-failed.org' }

/** Whether direct delivery can use DANE. `names` are a zone whose signatures are right and a zone whose are wrong. */
export async function checkDnssec(
  { delivery, isDevelopment }: Pick<Settings, 'delivery' | 'isDevelopment'>,
  resolver: Pick<Resolver, 'resolve'>,
  names: { signed: string; broken: string } = wellKnown,
): Promise<Check> {
  if (delivery !== 'direct') return skipped(name, 'not needed: only direct delivery uses DANE')
  if (isDevelopment) return skipped(name, 'not tried in development')
  const [signed, broken] = await Promise.all([
    resolver.resolve('MX', names.signed),
    resolver.resolve('A', names.broken),
  ])
  if (signed.status === 'temporary')
    return warning(name, `not tried: ${signed.reason}`, 'check that POSTHORN_DNS is right')
  if (!signed.isAuthenticated) {
    const mend = 'run a validating resolver on this machine, such as unbound, and set POSTHORN_DNS=127.0.0.1'
    return warning(name, `no trusted resolver proves ${names.signed}: mail is sent without DANE`, mend)
  }
  if (broken.status === 'temporary')
    return ok(name, `the resolver proves ${names.signed} and refuses ${names.broken}: DANE is used`)
  const mend = 'let it validate (unbound: auto-trust-anchor-file), or remove it from POSTHORN_DNS_TRUSTED'
  return failed(
    name,
    `the resolver claims to validate, but accepts the wrong signatures of ${names.broken}`,
    mend,
  )
}
