// The doctor's checks of block lists: whether each answers, and whether one of them lists an address of ours.
import type { Settings } from '../../config/settings.ts'
import { checkLists, type ListAnswer, publicName } from '../../mailauth/blocklists.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import { type Check, failed, ok, warning } from './checks.ts'

const name = 'block list'

/** One check for each configured list. */
export async function checkBlocklists({ blocklists }: Settings, lookup: Lookup): Promise<Check[]> {
  const zones = blocklists.map(({ zone }) => zone)
  // RFC 5782 5: each list contains 127.0.0.2, so that it can be tested.
  return (await checkLists(lookup, '127.0.0.2', zones)).map(describe)
}

/** Lists that large receivers use, asked if POSTHORN_DNSBL names none. */
const wellKnown = ['zen.spamhaus.org', 'bl.spamcop.net', 'psbl.surriel.com']

/** One check for each address and list: whether the list has an address that our mail comes from. */
export async function checkListings(
  { blocklists }: Settings,
  addresses: readonly string[],
  lookup: Lookup,
): Promise<Check[]> {
  const zones = blocklists.length > 0 ? blocklists.map(({ zone }) => zone) : wellKnown
  const answers = await Promise.all(
    addresses.map(async (ip) =>
      (await checkLists(lookup, ip, zones)).map((answer) => describeListing(ip, answer)),
    ),
  )
  return answers.flat()
}

function describeListing(ip: string, answer: ListAnswer): Check {
  const zone = publicName(answer.zone)
  const { outcome } = answer
  if (outcome === 'not_listed') return ok('listing', `${zone} does not list ${ip}`)
  if (outcome === 'listed')
    return failed(
      'listing',
      `${zone} lists ${ip}: receivers that use it refuse its mail`,
      `see why at the site of ${zone}, stop the cause, then ask to be removed`,
    )
  const mend = 'many lists refuse public resolvers: set POSTHORN_DNS to your own resolver'
  return warning(
    'listing',
    `${zone} gave no answer about ${ip}: ${answer.outcome === 'fault' ? answer.reason : ''}`,
    mend,
  )
}

function describe(answer: ListAnswer): Check {
  const zone = publicName(answer.zone)
  if (answer.outcome === 'listed') return ok(name, `${zone} answers`)
  const reason = answer.outcome === 'fault' ? answer.reason : 'it lacks the test entry 127.0.0.2'
  const mend = 'check the name in POSTHORN_DNSBL, and that the list answers the resolvers of POSTHORN_DNS'
  return warning(name, `${zone} lists nobody: ${reason}`, mend)
}
