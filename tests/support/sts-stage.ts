// Real mail servers with certificates of every kind, and a host of MTA-STS policies over HTTPS, for tests of outgoing TLS.
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createSecureContext } from 'node:tls'
import { SMTPServer } from 'smtp-server'
import { HopFinder } from '../../src/dns/mx.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { PolicyFetcher } from '../../src/flow/delivering/fetch-policy.ts'
import type { NextHopDeps } from '../../src/flow/delivering/next-hop.ts'
import type { TlsRules } from '../../src/flow/delivering/tls-rules.ts'
import { trustAuthority } from './certificates.ts'
import { DnsServer } from './dns-server.ts'
import { freePort } from './free-port.ts'
import type { Scope } from './until.ts'

export interface Served {
  status?: number
  headers?: Record<string, string>
  text: string
  isSelfSigned?: boolean
}

export interface Far {
  domain: string
  host: string
  address: string
  /** The mails that its server took. */
  mails: { isEncrypted: boolean; requiresTls: boolean; text: string }[]
  connections: number
}

export interface FarOptions {
  mode?: string
  /** The pattern of the policy. */
  mx?: string
  /** The name in the certificate. */
  named?: string
  toDays?: number
  isSelfSigned?: boolean
  isPlain?: boolean
  /** Whether it announces REQUIRETLS. */
  knowsRequireTls?: boolean
}

export const policyOf = (mode: string, mx: string, maxAge = 604_800) =>
  `version: STSv1\r\nmode: ${mode}\r\nmx: ${mx}\r\nmax_age: ${maxAge}\r\n`

const domainOf = (host: string) => host.replace(/^mta-sts\.|:\d+$/g, '')

/** Opens DNS, the authority of the certificates, and the policy host. They end with the scope. */
export async function openStsStage(scope: Scope) {
  const authority = trustAuthority(scope)
  const dns = await DnsServer.start()
  scope.after(() => dns.close())
  const mxPort = await freePort()
  /** The policies by domain. Each question is counted. */
  const served = new Map<string, Served>()
  const fetches: string[] = []
  /** Domains whose policy host does not listen. */
  const down = new Set<string>()
  const policyHost = createServer(
    {
      SNICallback: (host, done) => {
        const { isSelfSigned = false } = served.get(domainOf(host)) ?? {}
        done(null, createSecureContext(authority.issue(host, { isSelfSigned })))
      },
    },
    ({ headers: { host = '' }, url }, response) => {
      const domain = domainOf(host)
      fetches.push(domain)
      const { status = 200, headers = {}, text } = served.get(domain) ?? { status: 404, text: '' }
      const known = url === '/.well-known/mta-sts.txt' ? status : 404
      response.writeHead(known, { 'content-type': 'text/plain; charset=utf-8', ...headers }).end(text)
    },
  )
  policyHost.listen(0, '127.0.0.1')
  await once(policyHost, 'listening')
  scope.after(() => void policyHost.close())
  const fetcher = new PolicyFetcher({
    guard: { allows: () => true },
    lookup: async (host) => [down.has(domainOf(host)) ? '127.0.0.39' : '127.0.0.1'],
    port: (policyHost.address() as AddressInfo).port,
  })
  scope.after(() => fetcher.close())
  const resolver = new Resolver({ servers: [dns.address] })
  let count = 0

  function publish({ domain }: { domain: string }, id: string, policy: Served): void {
    dns.set(`_mta-sts.${domain}`, { TXT: [`v=STSv1; id=${id};`] })
    served.set(domain, policy)
  }

  /** Starts a domain with its policy and its mail server. */
  async function startFar(t: Scope, options: FarOptions = {}): Promise<Far> {
    const domain = `sts${++count}.test`
    const [host, address] = [`mx.${domain}`, `127.0.0.${100 + count}`]
    const { mode = 'enforce', mx = host, named = host, isPlain = false, knowsRequireTls = false } = options
    const far: Far = { domain, host, address, mails: [], connections: 0 }
    dns.set(domain, { MX: [[10, host]] })
    dns.set(host, { A: [address] })
    publish(far, '1', { text: policyOf(mode, mx) })
    const server = new SMTPServer({
      ...authority.issue(named, options),
      authOptional: true,
      disableReverseLookup: true,
      hideSTARTTLS: isPlain,
      hideREQUIRETLS: !knowsRequireTls,
      disabledCommands: isPlain ? ['AUTH', 'STARTTLS'] : ['AUTH'],
      logger: false,
      onConnect: (_session, done) => {
        far.connections++
        done()
      },
      onData: (stream, { secure, envelope }, done) => {
        const chunks: Buffer[] = []
        const { requireTLS = false } = envelope as { requireTLS?: boolean }
        stream.on('data', (chunk: Buffer) => chunks.push(chunk))
        stream.on('end', () => {
          const text = Buffer.concat(chunks).toString('latin1')
          far.mails.push({ isEncrypted: secure, requiresTls: requireTLS, text })
          done()
        })
      },
    })
    // A handshake that the client refuses is an error of the server too.
    server.on('error', () => {})
    server.listen(mxPort, address)
    await once(server.server, 'listening')
    t.after(() => new Promise<void>((resolve) => server.close(resolve)))
    return far
  }

  /** The parts of a node that delivers directly. */
  function nextHopWith(tlsRules: TlsRules): NextHopDeps {
    return {
      hopFinder: new HopFinder({ resolver, isAllowed: () => true }),
      resolver,
      mode: 'direct',
      relay: null,
      mxPort,
      tlsRules,
      outbound: { ipv4: null, ipv6: null },
      ehloName: 'me.test',
      ownEhloName: () => 'me.test',
      listAddresses: async () => [],
    }
  }

  return { dns, mxPort, served, fetches, down, fetcher, resolver, publish, startFar, nextHopWith }
}
