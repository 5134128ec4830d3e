// Collects another server's verdicts on mails: Postfix accepts them, and opendkim and opendmarc add their results.
import { authResultsOf, fieldsOf } from '../support/auth-results.ts'
import { eachOf, sendProxied } from '../support/proxied-mail.ts'
import type { SenderCase } from '../support/sender-cases/case-book.ts'
import { type Said, signatureCount } from '../support/sender-judges.ts'
import { type Scope, until } from '../support/until.ts'
import { startMilters } from './milters.ts'
import { startPostfix } from './postfix.ts'

export interface MilterVerdicts {
  opendkim: Said[]
  opendmarc: Said[]
}

const settings = `milter_default_action = tempfail
smtpd_upstream_proxy_protocol = haproxy
smtpd_peername_lookup = no
inet_protocols = all
`

/** Sends each mail and reads it back. `dns` is an address with a server on port 53 that has the zone of the cases. */
export async function askMilters(
  scope: Scope,
  dns: string,
  cases: readonly SenderCase[],
): Promise<MilterVerdicts> {
  const milters = await startMilters(scope, dns, { suffixes: ['example'] })
  const chain = `smtpd_milters = ${milters.chain}\n`
  const postfix = await startPostfix(scope, { host: '127.0.0.1', port: 9 }, { settings: chain + settings })
  const replies = await eachOf(cases, 8, (one) => sendProxied(postfix, { ...one, to: ['box@postfix.test'] }))
  const refused = replies.filter((reply) => !reply.startsWith('250'))
  if (refused.length > 0) throw new Error(`Postfix did not take ${refused.length} mails: ${refused[0]}`)
  const kept = await until('Postfix to keep them all', () => {
    const mails = postfix.kept()
    return mails.length === cases.length ? mails.map((mail) => mail.toString('latin1')) : null
  })
  const own = cases.map(({ messageId }) => kept.find((mail) => mail.includes(messageId))!)
  return {
    opendkim: own.map((mail, index) => ({ dkim: signaturesOf(mail, cases[index]!) })),
    opendmarc: own.map(readOpendmarc),
  }
}

/** Returns the results in order if opendkim lists all signatures, otherwise by selector. Null for signatures it skips. */
function signaturesOf(mail: string, { raw }: SenderCase): (string | null)[] {
  const results = authResultsOf(mail, 'postfix.test').filter(
    ({ method, result }) => method === 'dkim' && result !== 'none',
  )
  const selectors = fieldsOf(raw.toString('latin1'), 'DKIM-Signature').map(
    (field) => /\bs=(\w+)/.exec(field)?.[1],
  )
  if (results.length === signatureCount(raw)) return results.map(({ result }) => result)
  return selectors.map(
    (selector) => results.find(({ properties }) => properties['header.s'] === selector)?.result ?? null,
  )
}

/** Reads opendmarc's result. Its comment has the policy that applies to the author. */
function readOpendmarc(mail: string): Said {
  const results = authResultsOf(mail, 'postfix.test')
  const [spf, dmarc] = ['spf', 'dmarc'].map(
    (wanted) => results.find(({ method }) => method === wanted)?.result,
  )
  const policy = fieldsOf(mail, 'Authentication-Results')
    .map((field) => /dmarc=\w+ \(p=(\w+)/.exec(field)?.[1])
    .find((found) => found !== undefined)
  return {
    ...(spf && { spfPasses: spf === 'pass' ? 'pass' : 'not pass' }),
    ...(dmarc && { dmarc }),
    ...(policy && { policy }),
  }
}
