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
Creates a new secret key and seals everything again with it: DKIM keys, secrets of webhooks, keys of certificates. Stop
all nodes first, and run the command on the machine with the key file (POSTHORN_SECRET_KEY_FILE, or <data>/secret-key).
If interrupted, run it again: it continues, and nothing is lost. Then copy the file to the other nodes and to your
backup, and start the nodes.`

const replaceHelp = `
Use this only if the secret key is lost and there is no copy: look on other nodes and in backups first. Stop all nodes.
The command uses the key in the file, or creates one. Everything that the lost key sealed is gone. New DKIM keys are
created: those of the managed domain sign at once, those of customers once they have published them. Webhook calls fail
until their owners rotate the secrets. Certificates are ordered again. Reports about mail that was sent before are no
longer believed.`

export function addSecretCommands(program: Command): void {
  const secret = program
    .command('secret')
    .description('rotate or replace the key that seals secrets in the database')
  secret
    .command('rotate')
    .description('create a new key and seal everything with it, while no node runs')
    .addHelpText('after', rotateHelp)
    .option('--json', 'print JSON')
    .action(rotate)
  secret
    .command('replace')
    .description('continue without a lost key')
    .addHelpText('after', replaceHelp)
    .option('--yes', 'confirm the loss')
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
      rotated: `The new secret key is in ${file}; ${counted(resealed, 'secret was', 'secrets were')} sealed with it.`,
      tidied: `An earlier rotation is complete: the former key was removed from ${file}. To rotate once more, run the command again.`,
    }
    const left = unopened.map((name) => `${name} could not be opened with any key, and was not changed`)
    const copies =
      'Copy the file to every other node that has its own, and to the place where you keep a copy for your backups.'
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
      ? `this gives up the secrets that cannot be opened (${counted}): add --yes if there is no copy of the key anywhere`
      : `there is nothing to replace: the key in ${file} opens everything`,
  )
}

function describe(
  { isNewKey, domains, webhooks, accounts }: Replacement,
  keys: readonly ManagedKey[],
  managedDomain: string,
): string {
  const customers = domains.filter((domain) => domain !== managedDomain)
  return [
    isNewKey ? 'The database has a new secret key. Make a copy of it.' : 'The database keeps its secret key.',
    ...(domains.includes(managedDomain)
      ? [
          'New DKIM keys of the managed domain sign from the next start on. Publish:',
          ...keys.map(({ zoneLine }) => zoneLine),
        ]
      : []),
    ...customers.map(
      (domain) => `${domain}: its owner must publish new DKIM records; its mail waits until then`,
    ),
    ...webhooks.map(
      ({ id, organizationId, url }) =>
        `${id} of ${organizationId} (${url}): its owner must rotate the secret`,
    ),
    ...(accounts > 0 ? ['Certificates are ordered again.'] : []),
  ].join('\n')
}
