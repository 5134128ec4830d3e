// The doctor's check of the smarthost: connects as far as a delivery does before its first message.
import type { Settings } from '../../config/settings.ts'
import { HopFinder } from '../../dns/mx.ts'
import { Resolver } from '../../dns/resolver.ts'
import { type Opened, openRoute, type RelayTarget } from '../../flow/delivering/next-hop.ts'
import { specialRoutes } from '../../flow/route-policy.ts'
import { type Check, failed, ok } from './checks.ts'

const name = 'relay'
const stepMs = 5_000

/** Whether the smarthost accepts our connection with the configured TLS and password. */
export async function checkRelay({ relay, mailHost, mxPort, outbound }: Settings): Promise<Check> {
  const resolver = new Resolver({ servers: [] })
  const hopFinder = new HopFinder({ resolver, isAllowed: () => false })
  const timeouts = { connectMs: stepMs, bannerMs: stepMs, ehloMs: stepMs }
  const hop = { hopFinder, resolver, mode: 'relay' as const, relay, mxPort, outbound, timeouts }
  const own = { ehloName: mailHost, ownEhloName: () => mailHost, listAddresses: async () => [] }
  const deps = { ...hop, ...own }
  const asking = { asker: '', signal: new AbortController().signal, asked: [] }
  const opened = await openRoute(deps, specialRoutes.relay, asking)
  if ('connection' in opened) {
    await opened.connection.quit()
    return ok(name, describe(relay!, opened.connection.remote.tls))
  }
  const { text, classification } =
    'fault' in opened ? opened.fault : { text: reasonOf(opened), classification: 'dns' }
  const isTls = classification === 'tls'
  return failed(
    name,
    text,
    isTls
      ? `use the host name of its certificate, add its authority (NODE_EXTRA_CA_CERTS), or set POSTHORN_RELAY_TLS=unverified`
      : 'check host, port, user and password in POSTHORN_RELAY_URL, and that the server runs',
  )
}

/** Limits of the relay are not asked here, so no connection is held. */
function reasonOf(opened: Exclude<Opened, { connection: unknown } | { fault: unknown }>): string {
  return 'refusal' in opened ? opened.refusal.reason : 'held'
}

function describe({ host, port, tlsVerify, auth }: RelayTarget, tls: string | null): string {
  const secured = tls
    ? `${tls}, certificate ${tlsVerify === 'host' ? 'verified' : 'not verified'}`
    : 'without TLS'
  return `${host}:${port} accepts mail: ${secured}${auth ? ', password accepted' : ''}`
}
