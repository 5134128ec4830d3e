// `posthorn secret …`: changes the key that seals the database's secrets, and replaces a lost key.
import type { Command } from 'commander'
import { counted } from '../base/counted.ts'
import { ServiceError } from '../base/errors.ts'
import { createLog } from '../base/log.ts'
import { listManagedKeys, type ManagedKey } from '../flow/domains/managed-keys.ts'
import { countLost, type Replacement, replaceSecretKey } from '../flow/secrets/replace-secret-key.ts'
import { rotateSecretKey } from '../flow/secrets/rotate-secret-key.ts'
import { openWithoutKey, type Unopened } from '../foundation.ts'
import { loadSettings, type OutputOptions, print, remark, withFoundation } from './context.ts'

const rotateHelp = `
Makes a new secret key and seals everything anew: DKIM keys, secrets of webhooks, keys of certificates. Stop all nodes
first, and run it where the file of the key is (POSTHORN_SECRET_KEY_FILE, or <data>/secret-key). Broken off at any moment, it
goes on when it is run again, and nothing is lost. Copy the file to the other nodes and to your backup, then start them.`

const replaceHelp = `
For when the file of the secret key is lost and there is no copy: look for one first, on other nodes and in backups. Stop
all nodes. The key in the file is taken, or one is made. What the lost key had sealed is gone: DKIM keys are made anew (the
managed domain's sign at once, customers' once they have published them), webhooks fail until their owners rotate their
secrets, certificates are ordered anew, and reports about mail that was sent before are believed no longer.`

export function addSecretCommands(program: Command): void {
  const secret = program.command('secret').description('the key that seals what the database keeps secret')
  secret
    .command('rotate')
    .description('make a new one and seal everything anew, while no node runs')
    .addHelpText('after', rotateHelp)
    .option('--json', 'print JSON')
    .action(rotate)
  secret
    .command('replace')
    .description('go on without the one that was lost')
    .addHelpText('after', replaceHelp)
    .option('--yes', 'it is meant')
    .option('--json', 'print JSON')
    .action(replace)
}

async function rotate(options: OutputOptions): Promise<void> {
  await withFoundation(options, async ({ db, clock, settings }) => {
    const file = settings.secretKeyFile
    const progress = (words: string) => remark(options, words)
    const rotation = await rotateSecretKey({ db, clock, file, progress })
    const { status, resealed, unopened } = rotation
    const done = {
      rotated: `The secret key is a new one, in ${file}; ${counted(resealed, 'secret was', 'secrets were')} sealed anew.`,
      tidied: `An earlier change is complete: the former key is out of ${file}. For another one run this again.`,
    }
    const left = unopened.map((name) => `${name} opened with no key before, and stays as it is`)
    const copies =
      'Copy the file to the other nodes, if they have one of their own, and to where you keep the backup of it.'
    print(options, { ...rotation, file }, [done[status], ...left, copies].join('\n'))
  })
}

async function replace(options: OutputOptions & { yes?: boolean }): Promise<void> {
  const settings = loadSettings(options)
  const log = createLog('warn', settings.logFormat, options.terminal.stderr)
  const progress = (words: string) => remark(options, words)
  const opened = await openWithoutKey(settings, log, progress)
  try {
    const file = settings.secretKeyFile
    if (!options.yes) throw await describeLoss(opened, file)
    const { managedDomain } = settings
    const { db, clock } = opened
    const replaced = await replaceSecretKey({ db, clock, file, managedDomain, progress })
    const keys = await listManagedKeys(db, managedDomain)
    print(options, { ...replaced, file, keys }, describe(replaced, keys, managedDomain))
  } finally {
    await opened.close()
  }
}

async function describeLoss({ db }: Unopened, file: string): Promise<ServiceError> {
  const lost = Object.entries(await countLost({ db, file }))
  const counted = lost.map(([kind, count]) => `${kind} ${count}`).join(', ')
  return new ServiceError(
    'invalid_request',
    lost.length > 0
      ? `this gives up what cannot be opened (${counted}): add --yes if there is no copy of the key anywhere`
      : `everything opens with the key in ${file}: there is nothing to replace`,
  )
}

function describe(
  { isNewKey, domains, webhooks, accounts }: Replacement,
  keys: readonly ManagedKey[],
  managedDomain: string,
): string {
  const customers = domains.filter((domain) => domain !== managedDomain)
  return [
    isNewKey ? 'The database has a new secret key: make a copy of it.' : 'The database keeps its secret key.',
    ...(domains.includes(managedDomain)
      ? [
          'New DKIM keys of the managed domain sign from the start on; publish:',
          ...keys.map(({ zoneLine }) => zoneLine),
        ]
      : []),
    ...customers.map(
      (domain) => `${domain}: its owner has to publish new DKIM records; its mail waits until then`,
    ),
    ...webhooks.map(
      ({ id, organizationId, url }) => `${id} of ${organizationId} (${url}): its secret has to be rotated`,
    ),
    ...(accounts > 0 ? ['Certificates are ordered anew.'] : []),
  ].join('\n')
}
