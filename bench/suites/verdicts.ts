// The cost of sender verification alone: in this program, from MAIL FROM to the verdicts, with cached DNS.
import { Clock } from '../../src/base/clock.ts'
import { DnsCache } from '../../src/dns/cache.ts'
import { Resolver } from '../../src/dns/resolver.ts'
import { Evaluation } from '../../src/flow/receiving/evaluation.ts'
import type { Envelope } from '../../src/smtp/server/backend.ts'
import { measureCalls } from '../in-program.ts'
import type { PreparedMail } from '../load/verified-mail.ts'
import { type Plan, runCase } from '../plan.ts'

type Evaluate = () => Promise<unknown>

/** Measures these named mails. The DNS at `dns` has the records of their senders. */
export async function benchVerdicts(
  plan: Plan,
  mails: Record<string, PreparedMail>,
  dns: string,
): Promise<void> {
  const clock = new Clock()
  const cache = new DnsCache({ resolver: new Resolver({ servers: [dns] }), clock })
  const lookup = cache.lookupFor('127.0.0.0/24')
  const deps = { lookup, clock, hostname: 'mx.bench.test', arcTrusted: new Set<string>() }
  const evaluator = (mail: PreparedMail): Evaluate => {
    const envelope = envelopeOf(mail)
    return () => {
      const evaluation = new Evaluation(deps, envelope)
      evaluation.write(mail.bytes)
      return evaluation.end()
    }
  }
  const entrants = Object.entries(mails).map(([name, mail]) => ({ name, peer: evaluator(mail) }))
  await runCase(plan, 'verdicts alone, 5 KB, in one program', entrants, (evaluate) => {
    return () => measureCalls(evaluate, plan.targetMs)
  })
}

function envelopeOf({ helo, from }: PreparedMail): Envelope {
  const tls = { encrypted: false, protocol: 'none', cipher: 'none' }
  const at = from.lastIndexOf('@')
  const path = { localPart: from.slice(0, at), domain: from.slice(at + 1), address: from }
  return {
    peer: { address: '127.0.0.1', port: 25, helo, protocol: 'ESMTP', tls, isOwn: false, listedBy: [] },
    from: { ...path, sizeBytes: null, body: '7BIT', needsUtf8: false },
    to: [],
  }
}
