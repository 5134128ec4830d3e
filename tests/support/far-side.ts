// The receiving side with every behavior: domains that accept mail, defer it, refuse it, stall, or do not exist.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { DnsServer, type ZoneRecords } from './dns-server.ts'
import { type Rule, type Sink, startSink } from './sink.ts'
import type { Scope } from './until.ts'

const fixture = (name: string) => readFileSync(join(import.meta.dirname, '../fixtures', name))

export interface FarSide {
  dns: DnsServer
  /** The settings of a node that delivers to it. */
  env: Record<string, string>
  /** The servers without TLS, by their domain below `far.test`. */
  sinks: Record<string, Sink>
}

const at =
  (stage: string, reply: string): Rule =>
  (step) =>
    step.stage === stage ? reply : null

/** How each server answers, by the domain below `.far.test`. All are without TLS except `tls`. */
function moods(slowMs: number): Record<string, Rule> {
  const seen = new Set<string>()
  return {
    plain: ({ stage, command }) =>
      stage === 'rcpt' && command.includes('<nobody') ? '550 5.1.1 no such user here' : null,
    full: at('rcpt', '452 4.2.2 mailbox full, try again later'),
    grey: ({ stage, command }) => {
      if (stage !== 'rcpt' || seen.has(command)) return null
      seen.add(command)
      return '451 4.7.1 greylisted, please come back'
    },
    spam: at('message', '554 5.7.1 blocked: 192.0.2.1 is listed on zen.spamhaus.org'),
    slow: async ({ stage }) => {
      if (stage === 'message') await pause(slowMs)
      return null
    },
  }
}

export async function startFarSide(scope: Scope, { slowMs = 3_000 } = {}): Promise<FarSide> {
  const secure = new SMTPServer({
    key: fixture('tls-key.pem'),
    cert: fixture('tls-cert.pem'),
    authOptional: true,
    logger: false,
    onData: (stream, _session, done) => {
      stream.on('end', () => done()).resume()
    },
  })
  const host = (n: number) => `127.0.0.${20 + n}`
  await new Promise<void>((listening) => secure.listen(0, host(0), listening))
  scope.after(() => new Promise<void>((closed) => secure.close(closed)))
  const { port } = secure.server.address() as { port: number }
  const zone: Record<string, ZoneRecords> = {
    'tls.far.test': { MX: [[10, 'mx.tls.far.test']] },
    'mx.tls.far.test': { A: [host(0)] },
    'shut.far.test': { MX: [[0, '.']] },
    'down.far.test': { MX: [[10, 'mx.down.far.test']] },
    'mx.down.far.test': { A: [host(70)] },
  }
  const sinks: Record<string, Sink> = {}
  for (const [index, [name, rule]] of Object.entries(moods(slowMs)).entries()) {
    const sink = await startSink(scope, { host: host(index + 1), port, rule })
    sinks[name] = sink
    Object.assign(zone, {
      [`${name}.far.test`]: { MX: [[10, `mx.${name}.far.test`]] },
      [`mx.${name}.far.test`]: { A: [sink.host] },
    })
  }
  const dns = await DnsServer.start(zone)
  scope.after(() => dns.close())
  const env = {
    POSTHORN_DELIVERY: 'direct',
    POSTHORN_DNS: dns.address,
    POSTHORN_MX_PORT: String(port),
    POSTHORN_ALLOW_PRIVATE_NETWORKS: 'true',
  }
  return { dns, env, sinks }
}
