// The doctor's checks of the sources of pools: the address, its names, SPF, and block lists.
import { tryListening } from '../../config/listener.ts'
import { isPublicUnicast } from '../../dns/public-address.ts'
import type { Source, SourcePool } from '../../flow/source-pools.ts'
import { checkListings } from './blocklists.ts'
import type { Chain } from './chain.ts'
import { type Check, failed, ok, warning } from './checks.ts'
import { checkName, publishedOf, uncovered } from './outbound.ts'
import { checkEhloName } from './trial-mail.ts'

type World = Pick<Chain, 'settings' | 'resolver' | 'clock' | 'pools'>

const name = 'pool source'

/** Whether this machine has the sources. Other machines of the deployment may have the others. */
export async function checkOwnSources(pools: readonly SourcePool[]): Promise<Check[]> {
  const checks = pools.map(async (pool) => {
    const codes = await Promise.all(
      pool.sources.map(({ address }) => tryListening({ host: address, port: 0 })),
    )
    return codes.map((_, index) => describeOwn(pool, codes, index))
  })
  return (await Promise.all(checks)).flat()
}

/** `codes`: why each source of the pool cannot be used here; null if it can. */
function describeOwn(pool: SourcePool, codes: readonly (string | null)[], index: number): Check {
  const { address } = pool.sources[index]!
  const code = codes[index]!
  if (code === null) return ok(name, `pool ${pool.name}: mail leaves from ${address}`)
  const detail = `pool ${pool.name}: ${address} is not an address of this machine (${code})`
  const mend = 'add it to this machine, or correct POSTHORN_DELIVERY_FILE'
  return codes.includes(null)
    ? warning(name, `${detail}, so another source of the pool is used`, mend)
    : failed(name, detail, mend)
}

/** The checks of each source, as a receiver sees it. */
export async function checkSourceNames(world: World): Promise<Check[]> {
  const { settings, resolver, pools } = world
  const sources = pools.flatMap((pool) => pool.sources)
  const { mailHost } = settings
  const [four, six] = await Promise.all([
    publishedOf(resolver, 'A', mailHost),
    publishedOf(resolver, 'AAAA', mailHost),
  ])
  const checks = sources.map((source) => checkSource(world, source, [...four, ...six]))
  return (await Promise.all(checks)).flat()
}

/** The public addresses of all sources. */
export async function findSeenSources({ resolver, pools }: World): Promise<string[]> {
  const sources = pools.flatMap((pool) => pool.sources)
  return (await Promise.all(sources.map(async (source) => (await seenOf(resolver, source)).seen))).flat()
}

async function checkSource(world: World, source: Source, covered: readonly string[]): Promise<Check[]> {
  const { settings, resolver, clock } = world
  const { address, ehlo } = source
  const { published, seen } = await seenOf(resolver, source)
  const type = address.includes(':') ? 'AAAA' : 'A'
  if (seen.length === 0)
    return [
      failed(
        name,
        `${ehlo} has no address in DNS`,
        `publish: ${ehlo} ${type} <the public address of ${address}>`,
      ),
    ]
  const checks = seen.map(async (ip) => [
    ...(published.includes(ip)
      ? []
      : [
          failed(
            'EHLO name',
            `${ip} greets as ${ehlo}, which has not that address`,
            `publish: ${ehlo} ${type} ${ip}`,
          ),
        ]),
    await checkName(ip, ehlo, resolver),
    await checkEhloName(ehlo, ip, { resolver, clock }),
    ...uncovered(ip, covered, settings.mailHost),
  ])
  const lookup: Parameters<typeof checkListings>[2] = (kind, asked) => resolver.resolve(kind, asked)
  return [...(await Promise.all(checks)).flat(), ...(await checkListings(settings, seen, lookup))]
}

/** Behind a NAT, receivers see the addresses of the EHLO name, and not the private address. */
async function seenOf(resolver: World['resolver'], { address, ehlo }: Source) {
  const published = await publishedOf(resolver, address.includes(':') ? 'AAAA' : 'A', ehlo)
  return { published, seen: isPublicUnicast(address) ? [address] : published.filter(isPublicUnicast) }
}
