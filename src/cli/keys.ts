// `posthorn key …`: API keys.
import { isIP } from 'node:net'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseDuration } from '../base/duration.ts'
import { ServiceError } from '../base/errors.ts'
import type { InboxId, OrganizationId } from '../base/ids.ts'
import { createKey, endKey, findNamedKeys, requireNamedKey } from '../flow/accounts/key.ts'
import { type Scope, scopes } from '../flow/caller.ts'
import { parseDomain } from '../mail/address.ts'
import { trimDomain } from '../mail/domain-name.ts'
import type { Db } from '../postgres/db.ts'
import { type KeyRow, listKeys } from '../store/accounts/keys.ts'
import { findInbox } from '../store/mailbox/inboxes.ts'
import { type OutputOptions, parseName, print, remark, table, withFoundation } from './context.ts'
import { requireUuid } from './organizations.ts'

interface CreateOptions extends OutputOptions {
  org: string
  name: string
  scopes: string[]
  kind: KeyRow['kind']
  inbox?: InboxId[]
  ip?: string[]
  sendMode: KeyRow['sendMode']
  recipientDomain?: string[]
  confirmNewRecipients?: boolean
  expiresIn?: number
  requestsPerMinute?: number
}

export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('create, list and revoke API keys')
  key
    .command('create')
    .description('create a key; its secret is printed once and cannot be shown again')
    .requiredOption('--org <id>', 'the organization', requireUuid)
    .requiredOption('--name <name>', 'a name for people', parseName)
    .addOption(
      new Option('--scopes <a,b>', 'the permissions of the key')
        .choices(scopes)
        .argParser(parseScopes)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--kind <kind>', 'who uses the key; mail sent with kind agent is marked as automatic')
        .choices(['agent', 'server', 'dashboard'])
        .default('agent'),
    )
    .option('--inbox <id...>', 'restrict the key to these inboxes', each(/^inb_[a-f0-9]{24}$/, 'an inbox id'))
    .option('--ip <ip...>', 'accept the key only from these IP addresses', eachIp)
    .addOption(
      new Option('--send-mode <mode>', 'send new messages and replies, or replies only')
        .choices(['new_and_reply', 'reply_only'])
        .default('new_and_reply'),
    )
    .option('--recipient-domain <domain...>', 'allow sending only to these domains', eachDomain)
    .option(
      '--confirm-new-recipients',
      'send only to addresses that wrote to the inbox or got mail from it; a person sends the first message',
    )
    .option(
      '--expires-in <duration>',
      'lifetime, such as 30d, 12h, 90m or 10s; by default the key does not expire',
      parseExpiry,
    )
    .option(
      '--requests-per-minute <n>',
      "request limit of the key; by default the organization's",
      parseCount,
    )
    .option('--json', 'print JSON')
    .action(create)
  key
    .command('list')
    .description('list the keys of an organization, without their secrets')
    .requiredOption('--org <id>', 'the organization', requireUuid)
    .option('--json', 'print JSON')
    .action(list)
  key
    .command('revoke')
    .argument('[id]', 'the id of the key', requireUuid)
    .description('revoke a key; every node refuses it once the command has returned')
    .option('--org <id>', 'with --name, instead of the id: the organization', requireUuid)
    .option('--name <name>', 'with --org, instead of the id: the name of the key', parseName)
    .option('--json', 'print JSON')
    .action(revoke)
}

async function create(options: CreateOptions): Promise<void> {
  const { key, secret, others } = await withFoundation(options, async (foundation) => {
    await requireInboxes(foundation.db, options)
    const others = await findNamedKeys(foundation, options.org, options.name)
    const made = await createKey(foundation, {
      organizationId: options.org,
      name: options.name,
      kind: options.kind,
      scopes: options.scopes,
      inboxIds: options.inbox ?? null,
      allowedIps: options.ip ?? null,
      sendMode: options.sendMode,
      allowedRecipientDomains: options.recipientDomain ?? null,
      confirmNewRecipients: options.confirmNewRecipients ?? false,
      expiresInMs: options.expiresIn ?? null,
      requestsPerMinute: options.requestsPerMinute ?? null,
    })
    return { ...made, others }
  })
  if (others.length > 0)
    remark(
      options,
      `posthorn: another valid key has this name (${others.map(({ id }) => id).join(', ')}): revoke either of them by its id, not by --name`,
    )
  print(
    options,
    { ...key, secret },
    `${key.id}  ${key.name}\n\n  ${secret}\n\nThe secret is not shown again. Store it now. ${kindNotes[key.kind]}`,
  )
}

const unmarked = 'Mail sent with it is not marked as automatic.'
const kindNotes: Record<KeyRow['kind'], string> = {
  agent:
    'The key has the kind agent: mail sent with it is marked as automatic (Auto-Submitted). For a shop or a service, use --kind server.',
  server: `The key has the kind server. ${unmarked}`,
  dashboard: `The key has the kind dashboard. ${unmarked}`,
}

/** A key for a missing inbox could do nothing, and would show the error only when used. */
async function requireInboxes(db: Db, { org, inbox = [] }: CreateOptions): Promise<void> {
  for (const id of inbox)
    if ((await findInbox(db, org as OrganizationId, id))?.status !== 'active')
      throw new ServiceError('not_found', `there is no inbox ${id} in organization ${org}`)
}

async function list({ org, ...options }: OutputOptions & { org: string }): Promise<void> {
  const keys = await withFoundation(options, ({ db }) => listKeys(db, org))
  const state = ({ revokedAt, expiresAt }: KeyRow) => {
    if (revokedAt) return `revoked ${revokedAt.toISOString()}`
    return expiresAt ? `until ${expiresAt.toISOString()}` : 'no expiry'
  }
  const cells = keys.map((row) => [row.id, row.name, row.kind, row.scopes.join(','), only(row), state(row)])
  print(options, { keys }, table(['ID', 'NAME', 'KIND', 'SCOPES', 'ONLY', 'VALID'], cells))
}

/** The key's restrictions besides its scopes. */
function only(key: KeyRow): string {
  const { inboxIds, allowedIps, allowedRecipientDomains, sendMode, confirmNewRecipients } = key
  const lists = [
    ...(inboxIds ?? []),
    ...(allowedIps ?? []).map((ip) => `from ${ip}`),
    ...(allowedRecipientDomains ?? []).map((domain) => `to ${domain}`),
    ...(sendMode === 'reply_only' ? ['replies'] : []),
    ...(confirmNewRecipients ? ['known recipients'] : []),
  ]
  return lists.join(', ') || '-'
}

async function revoke(
  id: string | undefined,
  { org, name, ...options }: OutputOptions & { org?: string; name?: string },
  command: Command,
): Promise<void> {
  const isNamed = org !== undefined && name !== undefined
  if (isNamed ? id !== undefined : id === undefined || org !== undefined || name !== undefined)
    return command.error(
      'error: give either the id of a key, or its organization and name with --org and --name',
    )
  const key = await withFoundation(options, async (foundation) =>
    endKey(foundation, isNamed ? (await requireNamedKey(foundation, org, name)).id : id!),
  )
  print(options, key, `${key.id}  ${key.name}  revoked`)
}

function parseScopes(text: string): string[] {
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !scopes.includes(name as Scope))
  if (wrong !== undefined)
    throw new InvalidArgumentError(`"${wrong}" is not a scope. Scopes are ${scopes.join(', ')}.`)
  return [...new Set(names)]
}

function each(pattern: RegExp, what: string) {
  return (text: string, earlier: string[] = []) => {
    if (!pattern.test(text)) throw new InvalidArgumentError(`"${text}" is not ${what}.`)
    return [...earlier, text]
  }
}

function eachIp(text: string, earlier: string[] = []): string[] {
  if (!isIP(text)) throw new InvalidArgumentError(`"${text}" is not an IP address.`)
  return [...earlier, text]
}

function eachDomain(text: string, earlier: string[] = []): string[] {
  const domain = parseDomain(trimDomain(text))
  if (!domain) throw new InvalidArgumentError(`"${text}" is not a domain.`)
  return [...earlier, domain]
}

function parseExpiry(text: string): number {
  const ms = parseDuration(text)
  if (!ms) throw new InvalidArgumentError('Write a duration such as 30d, 12h, 90m or 10s.')
  return ms
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Write a whole number above 0.')
  return Number(text)
}
