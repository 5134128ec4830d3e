// `posthorn org …`: organizations and their limits.
import { type Command, InvalidArgumentError } from 'commander'
import { ServiceError } from '../base/errors.ts'
import { deleteOrganization, previewDeletion } from '../flow/accounts/delete-organization.ts'
import {
  changeLimits,
  changeOrganizationStatus,
  createOrganization,
  defaultLimits,
  isLimit,
  nameOrganization,
} from '../flow/accounts/organization.ts'
import {
  findOrganization,
  type LimitChanges,
  type Limits,
  listOrganizations,
  type OrganizationRow,
} from '../store/accounts/organizations.ts'
import { type OutputOptions, parseName, print, remark, table, withFoundation } from './context.ts'

/** The names that `org limits` changes. */
const names = [...Object.keys(defaultLimits), 'serverKeys']

const suspendHelp = `
Waiting mail is held until the organization is approved again, and still expires at the end of its lifetime. To cancel
it, run "posthorn queue cancel --org ID". Deliveries in progress finish.`

export function addOrganizationCommands(program: Command): void {
  const org = program.command('org').description('create, approve, suspend, limit and delete organizations')
  org
    .command('create')
    .description('create an organization; without --active it waits for approval')
    .requiredOption('--name <name>', 'a name for people', parseName)
    .option('--active', 'approve it at once')
    .option('--json', 'print JSON')
    .action(create)
  org.command('list').description('list all organizations').option('--json', 'print JSON').action(list)
  org
    .command('show')
    .argument('<id>', 'the id of the organization', requireUuid)
    .description('show an organization and its limits')
    .option('--json', 'print JSON')
    .action(show)
  org
    .command('approve')
    .argument('<id>', 'the id of the organization', requireUuid)
    .description('let an organization use the service')
    .option('--json', 'print JSON')
    .action((id, options) => changeStatus(id, 'active', options))
  org
    .command('suspend')
    .argument('<id>', 'the id of the organization', requireUuid)
    .description('refuse all calls of an organization, and hold its mail, until it is approved again')
    .addHelpText('after', suspendHelp)
    .option('--json', 'print JSON')
    .action((id, options) => changeStatus(id, 'suspended', options))
  org
    .command('rename')
    .argument('<id>', 'the id of the organization', requireUuid)
    .argument('<name>', 'the new name', parseName)
    .description('rename an organization; its members see the new name')
    .option('--json', 'print JSON')
    .action(rename)
  org
    .command('delete')
    .argument('<id>', 'the id of the organization', requireUuid)
    .description('delete an organization with all its data; if interrupted, run it again to continue')
    .option('--yes', 'confirm the deletion')
    .option('--json', 'print JSON')
    .action(remove)
  org
    .command('limits')
    .description('change the limits of an organization, and whether its members may make server keys')
    .argument('<id>', 'the id of the organization', requireUuid)
    .argument(
      '<key=value...>',
      `limits to change: ${names.join(', ')}; serverKeys=on lets members make server keys, serverKeys=off stops that`,
      eachLimit,
    )
    .option('--json', 'print JSON')
    .action((id, changes, options) => limit(id, changes, options))
}

async function create(options: OutputOptions & { name: string; active?: boolean }): Promise<void> {
  const row = await withFoundation(options, (foundation) =>
    createOrganization(foundation, {
      name: options.name,
      status: options.active ? 'active' : 'pending',
      limits: foundation.settings.defaultLimits,
    }),
  )
  print(options, row, `${row.id}  ${row.name}  ${row.status}`)
}

async function list(options: OutputOptions): Promise<void> {
  const rows = await withFoundation(options, ({ db }) => listOrganizations(db))
  const cells = rows.map(({ id, name, status, createdAt }) => [id, name, status, createdAt.toISOString()])
  print(options, { organizations: rows }, table(['ID', 'NAME', 'STATUS', 'CREATED'], cells))
}

async function show(id: string, options: OutputOptions): Promise<void> {
  const row = await withFoundation(options, ({ db }) => findOrganization(db, id))
  if (!row) throw new ServiceError('not_found', `there is no organization ${id}`)
  print(options, row, describe(row))
}

async function changeStatus(
  id: string,
  status: 'active' | 'suspended',
  options: OutputOptions,
): Promise<void> {
  const row = await withFoundation(options, (foundation) => changeOrganizationStatus(foundation, id, status))
  print(options, row, `${row.id}  ${row.name}  ${row.status}`)
}

async function rename(id: string, name: string, options: OutputOptions): Promise<void> {
  const row = await withFoundation(options, (foundation) => nameOrganization(foundation, id, name))
  print(options, row, `${row.id}  ${row.name}  ${row.status}`)
}

async function remove(id: string, options: OutputOptions & { yes?: boolean }): Promise<void> {
  await withFoundation(options, async (foundation) => {
    if (!options.yes) {
      const { name, ...holdings } = await previewDeletion(foundation, id)
      throw new ServiceError(
        'invalid_request',
        `this deletes ${name} with ${inWords(holdings)}: add --yes to confirm`,
      )
    }
    const removed = await deleteOrganization(foundation, id, (words) => remark(options, `${words} …`))
    print(options, { id, removed }, `Deleted ${id} with ${inWords(removed)}`)
  })
}

function inWords(holdings: object): string {
  return Object.entries(holdings)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ')
}

async function limit(id: string, changes: LimitChanges, options: OutputOptions): Promise<void> {
  const row = await withFoundation(options, (foundation) => changeLimits(foundation, id, changes))
  print(options, row, describe(row))
}

function eachLimit(change: string, earlier: LimitChanges = {}): LimitChanges {
  const [key = '', value = ''] = change.split('=', 2)
  if (!names.includes(key))
    throw new InvalidArgumentError(`"${key}" is not a limit. Limits are ${names.join(', ')}.`)
  if (key === 'serverKeys') return { ...earlier, serverKeys: parseSwitch(change, value) }
  if (!/^\d+$/.test(value) || !isLimit(key, Number(value)))
    throw new InvalidArgumentError(`"${change}" needs a whole number: ${key}=100.`)
  return { ...earlier, [key]: Number(value) }
}

function parseSwitch(change: string, value: string): boolean {
  if (value !== 'on' && value !== 'off') throw new InvalidArgumentError(`"${change}" needs on or off.`)
  return value === 'on'
}

function describe({ limits, serverKeys, ...row }: OrganizationRow): string {
  // PostgreSQL orders the members of a jsonb object by the length of their names.
  const known = (Object.keys(defaultLimits) as (keyof Limits)[]).filter((name) => name in limits)
  const cells = known.map((name) => [`  ${name}`, String(limits[name])])
  cells.push(['  serverKeys', serverKeys ? 'on' : 'off'])
  return [`${row.id}  ${row.name}  ${row.status}`, table(['  LIMIT', 'VALUE'], cells)].join('\n')
}

/** Checks the form of an id, so that a typo differs from an unknown organization. */
export function requireUuid(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    throw new InvalidArgumentError(`"${text}" is not an id (a UUID).`)
  return text.toLowerCase()
}
