// `posthorn dkim …`: the signing keys of the managed domain.
import type { Command } from 'commander'
import {
  listManagedKeys,
  loadSigningKeys,
  type ManagedKey,
  rotateManagedKeys,
} from '../flow/domains/managed-keys.ts'
import type { Foundation } from '../foundation.ts'
import { type OutputOptions, print, table, withFoundation } from './context.ts'

const rotateHelp = `
The new keys, RSA and Ed25519, do not sign yet. Publish their records, which are printed as lines of a zone file. Once
DNS shows a new key, a running service (role jobs) signs with it within seconds, and no longer with the former key of
its kind. Until then, running the command again prints the same records. Leave a former key published for seven days
more, for mail in transit; posthorn doctor says when you can remove it. In development nothing is published, and new
keys sign at once.
Customers rotate the keys of their own domains by POST /v1/domains/{domainId}/rotate-dkim.`

export function addDkimCommands(program: Command): void {
  const dkim = program.command('dkim').description('show and rotate the DKIM keys of the managed domain')
  dkim
    .command('show')
    .description('list the keys: signing, waiting to be published, or retired and still in DNS')
    .option('--json', 'print JSON')
    .action(show)
  dkim
    .command('rotate')
    .description('create new keys, which sign once their records are in DNS')
    .addHelpText('after', rotateHelp)
    .option('--json', 'print JSON')
    .action(rotate)
}

async function show(options: OutputOptions): Promise<void> {
  await withFoundation(options, async (foundation) => {
    const view = await readKeys(foundation)
    const cells = view.keys.map(({ selector, algorithm, state, publishedUntil }) => [
      ...[selector, algorithm, state, publishedUntil ?? ''],
    ])
    const keys = table(['SELECTOR', 'ALGORITHM', 'STATE', 'PUBLISHED UNTIL'], cells)
    print(options, view, [keys, ...describeWaiting(view.keys)].join('\n'))
  })
}

async function rotate(options: OutputOptions): Promise<void> {
  await withFoundation(options, async (foundation) => {
    const { settings } = foundation
    // Makes the first keys if no service has made them yet: only existing keys can be rotated.
    await loadSigningKeys(foundation, settings.managedDomain)
    const publication = settings.isDevelopment ? 'none' : 'dns'
    const made = await rotateManagedKeys(foundation, settings.managedDomain, publication)
    const view = await readKeys(foundation)
    const text = publication === 'none' ? describeAtOnce(view.keys) : describeWaiting(view.keys).join('\n')
    print(options, { ...view, made }, text)
  })
}

async function readKeys({ db, settings }: Foundation): Promise<{ domain: string; keys: ManagedKey[] }> {
  const domain = settings.managedDomain
  return { domain, keys: await listManagedKeys(db, domain) }
}

function describeAtOnce(keys: ManagedKey[]): string {
  const signing = keys.filter(({ state }) => state === 'active').map(({ selector }) => selector)
  return `${signing.join(', ')} sign from now on: in development no records are needed.`
}

/** Explains how to publish pending keys. Empty if no key is pending. */
function describeWaiting(keys: ManagedKey[]): string[] {
  const waiting = keys.filter(({ state }) => state === 'pending')
  if (waiting.length === 0) return []
  const former = keys.filter(({ state }) => state === 'active').map(({ selector }) => selector)
  return [
    '; Publish these lines as they are, in addition to the existing records:',
    ...waiting.map(({ zoneLine }) => zoneLine),
    '',
    `; Until DNS shows them, ${former.join(', ')} continues to sign. A running service checks DNS every few seconds, and`,
    '; signs with a new key once it finds it. Leave the former record published for seven days more: posthorn doctor says',
    '; until when.',
  ]
}
