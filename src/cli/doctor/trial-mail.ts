// The doctor's trial mail: composed and signed as a delivery would, and checked as a receiver would. It is never sent.
import type { OrganizationId } from '../../base/ids.ts'
import type { SendingIdentity } from '../../flow/delivering/sending-identity.ts'
import { Evaluation, type Verdicts } from '../../flow/receiving/evaluation.ts'
import { compose } from '../../mail/write/compose.ts'
import { signDkim } from '../../mailauth/dkim-sign.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import { checkSpf } from '../../mailauth/spf/check-spf.ts'
import type { Chain } from './chain.ts'
import type { Check } from './checks.ts'
import { failed, ok, warning } from './checks.ts'

interface TriedDomain {
  organizationId: OrganizationId
  name: string
}

const name = 'trial mail'
/** Without a source address, as by a smarthost, SPF cannot be checked. */
const unknownSource = '192.0.2.1'

const mends = {
  managed: 'publish the records that the lines “DNS: …” name',
  customer: 'its owner must publish the records that GET /v1/domains/{domainId} shows',
} as const

/** One check for each source address, or one without SPF if there is none. */
export async function checkTrialMail(
  chain: Chain,
  domain: TriedDomain,
  sources: readonly string[],
  owner: keyof typeof mends,
): Promise<Check[]> {
  const identity = await chain.identities.of(domain.organizationId, domain.name, 'domain')
  if (typeof identity === 'string')
    return [
      failed(name, `${domain.name} has no key to sign with`, 'see the signing keys: posthorn dkim show'),
    ]
  const message = await write(chain, domain.name, identity)
  if (sources.length > 0)
    return await Promise.all(
      sources.map(async (ip) =>
        describeVerdicts(domain.name, ip, await evaluate(chain, identity, message, ip), mends[owner]),
      ),
    )
  return [
    describeVerdicts(
      domain.name,
      null,
      await evaluate(chain, identity, message, unknownSource),
      mends[owner],
    ),
  ]
}

async function write({ clock }: Chain, domain: string, { keys }: SendingIdentity): Promise<Buffer> {
  const date = clock.now()
  const message = compose({
    from: { email: `postmaster@${domain}` },
    to: [{ email: `postmaster@${domain}` }],
    cc: [],
    replyTo: null,
    subject: 'Trial',
    text: 'Trial.\n',
    html: null,
    messageId: `<trial@${domain}>`,
    inReplyTo: null,
    references: [],
    date,
    headers: {},
    attachments: [],
    seed: domain,
  })
  return Buffer.concat([await signDkim(message, keys, date), message])
}

async function evaluate(
  { settings: { mailHost }, resolver, clock }: Chain,
  { returnPathHost }: SendingIdentity,
  message: Buffer,
  address: string,
): Promise<Verdicts> {
  const lookup: Lookup = (type, name) => resolver.resolve(type, name)
  const evaluation = new Evaluation(
    { lookup, clock, hostname: mailHost, arcTrusted: new Set() },
    {
      peer: { address, helo: mailHost } as never,
      from: { address: `bounce@${returnPathHost}` } as never,
    },
  )
  evaluation.write(message)
  return (await evaluation.end())!
}

function describeVerdicts(
  domain: string,
  ip: string | null,
  { spf, dkim, dmarc }: Verdicts,
  mend: string,
): Check {
  const signatures = dkim.map(
    ({ selector, result, reason }) => `${selector} ${result === 'pass' ? result : reason}`,
  )
  const words = [
    ...(ip === null ? [] : [`SPF ${spf.result}${spf.result === 'pass' ? '' : ` (${spf.reason})`}`]),
    `DKIM ${signatures.join(', ')}`,
    `DMARC ${dmarc.result}${dmarc.result === 'pass' ? `, policy ${dmarc.policy}` : ` (${dmarc.reason})`}`,
  ]
  const detail = `${domain}${ip === null ? '' : ` from ${ip}`}: ${words.join('; ')}`
  if (dmarc.result === 'fail' || dmarc.result === 'permerror') return failed(name, detail, mend)
  const isWhole = dkim.every(({ result }) => result === 'pass') && (ip === null || spf.result === 'pass')
  return dmarc.result === 'pass' && isWhole ? ok(name, detail) : warning(name, detail, mend)
}

/** Whether SPF lets the address greet as the mail host. A receiver checks that for mail without a return path. */
export async function checkEhloName(
  mailHost: string,
  ip: string,
  { resolver, clock }: Pick<Chain, 'resolver' | 'clock'>,
): Promise<Check> {
  const title = 'EHLO name'
  // RFC 5321 4.1.1.1: the client's name is a fully-qualified domain name.
  if (!mailHost.includes('.'))
    return failed(
      title,
      `${mailHost} is no full domain name`,
      'set POSTHORN_MAIL_HOST to a name such as mx.example.com',
    )
  const lookup: Lookup = (type, name) => resolver.resolve(type, name)
  const asked = { ip, helo: mailHost, from: '', hostname: mailHost, at: clock.now() }
  const { result, reason } = await checkSpf(lookup, asked)
  const detail = `${mailHost} from ${ip}: SPF ${result}`
  if (result === 'pass') return ok(title, detail)
  const publish = `publish: ${mailHost} TXT "v=spf1 a -all"`
  // RFC 7208 2.3: receivers should check HELO too.
  return result === 'fail'
    ? failed(title, `${detail} (${reason})`, publish)
    : warning(title, `${detail} (${reason})`, publish)
}
