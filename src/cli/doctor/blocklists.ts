// The doctor's check of block lists: each must answer for the test entry that every list has.
import type { Settings } from '../../config/settings.ts'
import { checkLists, type ListAnswer, publicName } from '../../mailauth/blocklists.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import { type Check, ok, warning } from './checks.ts'

const name = 'block list'

/** One check for each configured list. */
export async function checkBlocklists({ blocklists }: Settings, lookup: Lookup): Promise<Check[]> {
  const zones = blocklists.map(({ zone }) => zone)
  // RFC 5782 5: each list contains 127.0.0.2, so that it can be tested.
  return (await checkLists(lookup, '127.0.0.2', zones)).map(describe)
}

function describe(answer: ListAnswer): Check {
  const zone = publicName(answer.zone)
  if (answer.outcome === 'listed') return ok(name, `${zone} answers`)
  const reason = answer.outcome === 'fault' ? answer.reason : 'it lacks the test entry 127.0.0.2'
  const mend = 'check the name in POSTHORN_DNSBL, and that the list answers the resolvers of POSTHORN_DNS'
  return warning(name, `${zone} lists nobody: ${reason}`, mend)
}
