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
  expiresIn?: number
  requestsPerMinute?: number
}

export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('API keys: made here, shown once')
  key
    .command('create')
    .description('make a key; its secret is printed once and cannot be had again')
    .requiredOption('--org <id>', 'the organization', requireUuid)
    .requiredOption('--name <name>', 'what people call it', parseName)
    .addOption(
      new Option('--scopes <a,b>', 'what it permits')
        .choices(scopes)
        .argParser(parseScopes)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--kind <kind>', 'who uses it; mail of kind agent is marked as automatic')
        .choices(['agent', 'server', 'dashboard'])
        .default('agent'),
    )
    .option('--inbox <id...>', 'restrict it to these inboxes', each(/^inb_[a-f0-9]{24}$/, 'an inbox id'))
    .option('--ip <ip...>', 'take it only from these addresses', eachIp)
    .addOption(
      new Option('--send-mode <mode>', 'what it sends')
        .choices(['new_and_reply', 'reply_only'])
        .default('new_and_reply'),
    )
    .option('--recipient-domain <domain...>', 'let it send to these domains only', eachDomain)
    .option('--expires-in <duration>', '30d, 12h, 90m or 10s; without it, never', parseExpiry)
    .option('--requests-per-minute <n>', "its own request rate; without it, the organization's", parseCount)
    .option('--json', 'print JSON')
    .action(create)
  key
    .command('list')
    .description("an organization's keys, without their secrets")
    .requiredOption('--org <id>', 'the organization', requireUuid)
    .option('--json', 'print JSON')
    .action(list)
  key
    .command('revoke')
    .argument('[id]', 'its id', requireUuid)
    .description('end a key; no node takes it any more once this has returned')
    .option('--org <id>', 'in place of its id: the organization whose it is,', requireUuid)
    .option('--name <name>', 'and its name', parseName)
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
      expiresInMs: options.expiresIn ?? null,
      requestsPerMinute: options.requestsPerMinute ?? null,
    })
    return { ...made, others }
  })
  if (others.length > 0)
    remark(
      options,
      `posthorn: another key of this name is good too (${others.map(({ id }) => id).join(', ')}): "key revoke --name" cannot tell them apart`,
    )
  print(
    options,
    { ...key, secret },
    `${key.id}  ${key.name}\n\n  ${secret}\n\nThis is the only time that the secret is shown. ${kindNotes[key.kind]}`,
  )
}

const unmarked = 'Mail sent with it is not marked as automatic.'
const kindNotes: Record<KeyRow['kind'], string> = {
  agent:
    'The key is of the kind agent: mail sent with it is marked as automatic (Auto-Submitted). For a shop or a service take --kind server.',
  server: `The key is of the kind server. ${unmarked}`,
  dashboard: `The key is of the kind dashboard. ${unmarked}`,
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
    return expiresAt ? `until ${expiresAt.toISOString()}` : 'for good'
  }
  const cells = keys.map((row) => [row.id, row.name, row.kind, row.scopes.join(','), only(row), state(row)])
  print(options, { keys }, table(['ID', 'NAME', 'KIND', 'SCOPES', 'ONLY', 'VALID'], cells))
}

/** The key's restrictions besides its scopes. */
function only({ inboxIds, allowedIps, allowedRecipientDomains, sendMode }: KeyRow): string {
  const lists = [
    ...(inboxIds ?? []),
    ...(allowedIps ?? []).map((ip) => `from ${ip}`),
    ...(allowedRecipientDomains ?? []).map((domain) => `to ${domain}`),
    ...(sendMode === 'reply_only' ? ['replies'] : []),
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
    return command.error('error: name either the id of a key or, with --org and --name, what it is called')
  const key = await withFoundation(options, async (foundation) =>
    endKey(foundation, isNamed ? (await requireNamedKey(foundation, org, name)).id : id!),
  )
  print(options, key, `${key.id}  ${key.name}  revoked`)
}

function parseScopes(text: string): string[] {
  const names = text.split(',').map((name) => name.trim())
  const wrong = names.find((name) => !scopes.includes(name as Scope))
  if (wrong !== undefined)
    throw new InvalidArgumentError(`"${wrong}" is no scope: there are ${scopes.join(', ')}`)
  return [...new Set(names)]
}

function each(pattern: RegExp, what: string) {
  return (text: string, earlier: string[] = []) => {
    if (!pattern.test(text)) throw new InvalidArgumentError(`"${text}" is not ${what}`)
    return [...earlier, text]
  }
}

function eachIp(text: string, earlier: string[] = []): string[] {
  if (!isIP(text)) throw new InvalidArgumentError(`"${text}" is not an IP address`)
  return [...earlier, text]
}

function eachDomain(text: string, earlier: string[] = []): string[] {
  const domain = parseDomain(trimDomain(text))
  if (!domain) throw new InvalidArgumentError(`"${text}" is not a domain`)
  return [...earlier, domain]
}

function parseExpiry(text: string): number {
  const ms = parseDuration(text)
  if (!ms) throw new InvalidArgumentError('write 30d, 12h, 90m or 10s')
  return ms
}

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('write a whole number above 0')
  return Number(text)
}
