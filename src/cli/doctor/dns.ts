// The doctor's DNS checks: whether the world finds the managed domain's mail server, keys and policies.
import { networkInterfaces } from 'node:os'
import type { Settings } from '../../config/settings.ts'
import type { DnsAnswer, Resolver } from '../../dns/resolver.ts'
import type { ManagedKey } from '../../flow/domains/managed-keys.ts'
import { type Check, failed, ok, warning } from './checks.ts'

interface TextRecord {
  name: string
  value: string
}

/** The managed domain's records as they must be published. */
export interface ManagedDomain {
  domain: string
  mailHost: string
  mx: { name: string; preference: number; value: string }
  dkim: ManagedKey[]
  spf: TextRecord
  dmarc: TextRecord
}

export function expectedRecords(
  { managedDomain: domain, mailHost }: Settings,
  dkim: ManagedKey[],
): ManagedDomain {
  return {
    domain,
    mailHost,
    mx: { name: domain, preference: 10, value: mailHost },
    dkim,
    spf: { name: domain, value: `v=spf1 a:${mailHost} -all` },
    dmarc: { name: `_dmarc.${domain}`, value: 'v=DMARC1; p=none' },
  }
}

/** Looks up every record and evaluates the answers. */
export async function checkRecords(
  managed: ManagedDomain,
  resolver: Pick<Resolver, 'resolve'>,
): Promise<Check[]> {
  const { mailHost, mx, dkim, spf, dmarc } = managed
  const address = async () =>
    evaluateAddresses(
      mailHost,
      await resolver.resolve('A', mailHost),
      await resolver.resolve('AAAA', mailHost),
    )
  return Promise.all([
    address(),
    resolver.resolve('MX', mx.name).then((answer) => checkMxRecord(mx, answer)),
    ...dkim.map(async (record) => checkDkimRecord(record, await resolver.resolve('TXT', record.name))),
    resolver.resolve('TXT', spf.name).then((answer) => checkSpfRecord(spf, answer)),
    resolver.resolve('TXT', dmarc.name).then((answer) => checkDmarcRecord(dmarc, answer)),
  ])
}

type Addresses = DnsAnswer<{ address: string }>

function evaluateAddresses(host: string, four: Addresses, six: Addresses): Check {
  const name = 'DNS: mail host'
  const found = [...foundIn(four), ...foundIn(six)].map(({ address }) => address)
  if (found.length > 0) return ok(name, `${host} is ${found.join(', ')}, ${whereIs(found)}`)
  const mend = `publish: ${host} A <this machine's address>`
  return unanswered(name, four, mend) ?? failed(name, `${host} has no address`, mend)
}

/** An address of another machine is correct behind a NAT, or with several nodes. */
function whereIs(published: readonly string[]): string {
  const own = Object.values(networkInterfaces()).flatMap((found = []) => found.map(({ address }) => address))
  return published.some((address) => own.includes(address))
    ? 'an address of this machine'
    : 'not an address of this machine: fine behind a NAT, or if another node receives mail'
}

/** Whether mail for the domain goes to our host. */
export function checkMxRecord(
  wanted: ManagedDomain['mx'],
  answer: DnsAnswer<{ exchange: string; preference: number }>,
): Check {
  const name = 'DNS: MX'
  const found = foundIn(answer).map(({ exchange }) => exchange)
  if (found.includes(wanted.value.toLowerCase()))
    return ok(name, `mail for ${wanted.name} goes to ${found.join(', ')}`)
  const detail =
    found.length > 0
      ? `mail for ${wanted.name} goes to ${found.join(', ')}, not here`
      : `${wanted.name} has no MX`
  const mend = `publish: ${wanted.name} MX ${wanted.preference} ${wanted.value}`
  return unanswered(name, answer, mend) ?? failed(name, detail, mend)
}

type PublishedKey = Pick<ManagedKey, 'name' | 'value' | 'zoneLine' | 'state' | 'publishedUntil'>

/** Whether the key is published: the signing key, a pending key, or a former key whose mail may still be on its way. */
export function checkDkimRecord(wanted: PublishedKey, answer: DnsAnswer<string>): Check {
  const { state, zoneLine } = wanted
  const name = `DNS: DKIM ${wanted.name.split('.', 1)[0]}`
  const found = foundIn(answer)
  const until = wanted.publishedUntil?.slice(0, 10)
  const uses = {
    active: 'the signing key',
    pending: 'the new key, which signs within seconds if a node runs the role jobs',
    retired: `a former key; remove it after ${until}`,
  }
  if (found.some((text) => keyIn(text) === keyIn(wanted.value)))
    return ok(name, `${wanted.name} has ${uses[state]}`)
  const detail = found.length > 0 ? `${wanted.name} has another key` : `${wanted.name} is missing`
  const losses = {
    active: ': receivers cannot verify its signatures',
    pending: ': the new key waits to be published, and the former key signs until then',
    retired: `: mail that the former key signed may be in transit until ${until}`,
  }
  const grade = state === 'active' ? failed : warning
  const mend = `publish: ${zoneLine}`
  return unanswered(name, answer, mend) ?? grade(name, `${detail}${losses[state]}`, mend)
}

/** The `p=` tag without white space, which has no meaning there. */
function keyIn(record: string): string | undefined {
  const tag = record.split(';').find((text) => /^\s*p\s*=/.test(text))
  return tag?.slice(tag.indexOf('=') + 1).replaceAll(/\s/g, '')
}

/** Bounces return to the managed domain itself, so receivers look up its own policy. */
export function checkSpfRecord(wanted: TextRecord, answer: DnsAnswer<string>): Check {
  const name = 'DNS: SPF'
  const policies = foundIn(answer).filter((text) => /^v=spf1( |$)/i.test(text))
  if (policies.length === 1) return ok(name, `${wanted.name} has "${policies[0]}"`)
  const mend = `publish: ${wanted.name} TXT "${wanted.value}"`
  if (policies.length > 1)
    return failed(
      name,
      `${wanted.name} has ${policies.length} SPF records, which is an error`,
      `keep one: "${wanted.value}"`,
    )
  return unanswered(name, answer, mend) ?? failed(name, `${wanted.name} has no SPF record`, mend)
}

function checkDmarcRecord(wanted: TextRecord, answer: DnsAnswer<string>): Check {
  const name = 'DNS: DMARC'
  const policy = foundIn(answer).find((text) => /^v=DMARC1\b/i.test(text))
  if (policy) return ok(name, `${wanted.name} has "${policy}"`)
  const mend = `publish: ${wanted.name} TXT "${wanted.value}"`
  return unanswered(name, answer, mend) ?? warning(name, `${wanted.name} is missing`, mend)
}

function foundIn<Found>(answer: DnsAnswer<Found>): Found[] {
  return answer.status === 'ok' ? answer.records : []
}

/** A warning if DNS gave no answer, which does not mean that the record is missing. `mend` is the remedy if it is. */
function unanswered(name: string, answer: DnsAnswer<unknown>, mend: string): Check | null {
  const another = 'try again, or set POSTHORN_DNS to other resolvers'
  return answer.status === 'temporary'
    ? warning(name, answer.reason, `${another}; if the record is missing, ${mend}`)
    : null
}
