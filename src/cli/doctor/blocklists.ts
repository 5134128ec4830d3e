// What the doctor makes of block lists: whether each answers as a list does, for the entry that every one has for this.
import type { Settings } from '../../config/settings.ts'
import { checkLists, type ListAnswer, publicName } from '../../mailauth/blocklists.ts'
import type { Lookup } from '../../mailauth/lookup.ts'
import { type Check, ok, warning } from './checks.ts'

const name = 'block list'

/** A check for each list; none where none is set. */
export async function checkBlocklists({ blocklists }: Settings, lookup: Lookup): Promise<Check[]> {
  const zones = blocklists.map(({ zone }) => zone)
  // RFC 5782 5: each list has 127.0.0.2, so that it can be tested.
  return (await checkLists(lookup, '127.0.0.2', zones)).map(describe)
}

function describe(answer: ListAnswer): Check {
  const zone = publicName(answer.zone)
  if (answer.outcome === 'listed') return ok(name, `${zone} answers`)
  const reason =
    answer.outcome === 'fault' ? answer.reason : 'it does not have 127.0.0.2, as every list should'
  const mend = 'see that POSTHORN_DNSBL names it rightly, and that it answers the resolvers of POSTHORN_DNS'
  return warning(name, `${zone} lists nobody: ${reason}`, mend)
}
