// Reads `delivery.toml`: the operator's limits of destinations, and pools of source addresses. A mistake stops the start.
import { createReadStream } from 'node:fs'
import { text as readText } from 'node:stream/consumers'
import { parse, TomlDate, TomlError } from 'smol-toml'
import { parseDuration } from '../base/duration.ts'
import type { OutboundAddresses } from '../flow/delivering/outbound.ts'
import {
  builtInRules,
  type GroupRules,
  type NamedGroup,
  type Rate,
  type ReplyRule,
  type ShapingRules,
  usualRules,
} from '../flow/delivering/shaping-rules.ts'
import { reservedPools } from '../flow/route-policy.ts'
import { type Source, type SourcePool, takesTheRest, type WarmUp } from '../flow/source-pools.ts'
import { parseDomain } from '../mail/address.ts'
import { nearest } from './nearest.ts'
import { quoted, SettingError } from './setting-reader.ts'
import { outboundAddresses } from './setting-values.ts'
import type { Settings } from './settings.ts'

const maxFileBytes = 1 << 20
const maxGroups = 500
const maxPools = 50
const maxEntries = 100
const maxOrganizations = 10_000
const dayMs = 86_400_000

export interface DeliveryRules extends ShapingRules {
  pools: readonly SourcePool[]
}

/** Returns the built-in rules, changed by the file. Throws a SettingError that names the line or the key. */
export async function readDeliveryFile({
  deliveryFile: file,
  outbound,
}: Pick<Settings, 'deliveryFile' | 'outbound'>): Promise<DeliveryRules> {
  if (file === null) return { ...builtInRules, pools: [] }
  const text = await readText(createReadStream(file, { end: maxFileBytes })).catch((error) => {
    throw new SettingError(
      `${file} cannot be read (${error.code}): let this user read it, or unset POSTHORN_DELIVERY_FILE`,
    )
  })
  const named = `POSTHORN_DELIVERY_FILE ${file}`
  if (text.length > maxFileBytes) throw new SettingError(`${named} is too large: write at most 1 MiB`)
  return parseDeliveryFile(text, named, outbound)
}

/** Parses the text of the file. `outbound`: the addresses of mail without a pool. Throws a SettingError. */
export function parseDeliveryFile(text: string, file: string, outbound: OutboundAddresses): DeliveryRules {
  const root = new Table(parseToml(text, file), file)
  const usual = root.has('default') ? readRules(root.table('default'), usualRules) : usualRules
  const named = root.tables('group', maxGroups).map((table) => readGroup(table, usual))
  const pools = root.tables('pool', maxPools).map(readPool)
  root.refuseOthers()
  const names = named.map(({ name }) => name)
  refuseTwice(file, 'group', names, 'write one table for it')
  refuseSharing(file, pools)
  refuseOutbound(file, pools, outbound)
  const builtIn = builtInRules.groups.filter(({ name }) => !names.includes(name))
  return { usual, groups: [...named, ...builtIn], pools }
}

function refuseTwice(file: string, what: string, names: readonly string[], mend: string): void {
  const seen = new Set<string>()
  for (const name of names) {
    if (seen.has(name)) throw new SettingError(`${file}: ${what} ${quoted(name)} is there twice: ${mend}`)
    seen.add(name)
  }
}

/** A mail must have one pool, and an address one warm-up plan. */
function refuseSharing(file: string, pools: readonly SourcePool[]): void {
  const listed = <Value>(of: (pool: SourcePool) => readonly Value[]) => pools.flatMap(of)
  refuseTwice(
    file,
    'pool',
    listed(({ name }) => [name]),
    'write one table for it',
  )
  refuseTwice(
    file,
    'organization',
    listed(({ organizations }) => organizations),
    'name it in one pool',
  )
  refuseTwice(
    file,
    'purpose',
    listed(({ purposes }) => purposes),
    'name it in one pool',
  )
  const addresses = listed(({ sources }) => sources.map(({ address }) => address))
  refuseTwice(file, 'address', addresses, 'name it in one pool')
  const [, other] = pools.filter(takesTheRest)
  if (other)
    throw new SettingError(
      `${file}: pool ${quoted(other.name)} is the second one for all other mail: write organizations or purposes`,
    )
}

/** Mail without a pool would not count for the limits and the warm-up of the source. */
function refuseOutbound(file: string, pools: readonly SourcePool[], { ipv4, ipv6 }: OutboundAddresses): void {
  const sources = pools.flatMap(({ sources }) => sources)
  const shared = sources.find(({ address }) => address === ipv4 || address === ipv6)
  if (shared)
    throw new SettingError(
      `${file}: address ${quoted(shared.address)} is also in POSTHORN_OUTBOUND_IP: use another address for one of them`,
    )
}

function parseToml(text: string, file: string): Record<string, unknown> {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const reason = error.message.split('\n')[0]!.replace(/^Invalid TOML document: /, '')
    throw new SettingError(`${file}:${error.line}: ${reason}: write TOML, as docs/operating.md shows`)
  }
}

/** Reads a group. Keys that are not there are as in the built-in group of its name, or as in `default`. */
function readGroup(table: Table, usual: GroupRules): NamedGroup {
  const name = table.read('name', groupName, '"google", or a name of your own in small letters')
  if (name === undefined)
    throw table.error('name', 'has no name', 'write name = "google", or a name of your own')
  const builtIn = builtInRules.groups.find((group) => group.name === name)
  const mx = table.read(
    'mx',
    listOf(mailServer),
    '["mx.example.com"]: names of mail servers, or their domains',
  )
  if (mx === undefined && !builtIn && !name.startsWith('@'))
    throw table.error('mx', 'is not there', `write mx = ["example.com"], the mail servers of ${name}`)
  const rules = readRules(table, builtIn ?? usual)
  return { ...rules, name, mx: mx ?? builtIn?.mx ?? [] }
}

function readRules(table: Table, base: GroupRules): GroupRules {
  const rules = {
    connections: table.read('connections', count(1_000), 'a number from 1 to 1000') ?? base.connections,
    messagesPerConnection:
      table.read('messages-per-connection', count(1_000_000), 'a number from 1 to 1000000') ??
      base.messagesPerConnection,
    rates: table.read('messages', rateList, '"100/1m", or ["100/1m", "1000/1h"], up to 1d') ?? base.rates,
    replies: [...table.tables('reply', maxEntries).map(readReply), ...base.replies],
  }
  table.refuseOthers()
  return rules
}

function readReply(table: Table): ReplyRule {
  const code = table.read('code', replyCode, 'a number from 400 to 599') ?? null
  const enhanced = table.read('enhanced', enhancedStatus, '"4.7.28", or "4.7.*"') ?? null
  const text = table.read('text', replyText, 'a part of the reply, of 1 to 200 characters') ?? null
  const pauseMs = table.read('pause', pause, '"10m", from 1s to 1d')
  if (pauseMs === undefined) throw table.error('pause', 'is not there', 'write pause = "10m"')
  if (code === null && enhanced === null && text === null)
    throw table.error('code', 'is not there', 'write code, enhanced or text, because each reply would match')
  table.refuseOthers()
  return { code, enhanced, text, pauseMs }
}

function readPool(table: Table): SourcePool {
  const example = '"bulk": small letters, digits and hyphens'
  const name = table.read('name', poolName, example)
  if (name === undefined) throw table.error('name', 'is not there', `write name = ${example}`)
  const organizations =
    table.read(
      'organizations',
      listOf(uuid, maxOrganizations),
      'a list of ids, as "posthorn org list" shows',
    ) ?? []
  const purposes =
    table.read('purposes', listOf(purpose), '["transactional"], ["unclassified"], or both of them') ?? []
  const sources = table.tables('source', maxEntries).map(readSource)
  if (sources.length === 0)
    throw table.error('source', 'is not there', 'write [[pool.source]] with an address and its ehlo')
  table.refuseOthers()
  return { name, organizations, purposes, sources }
}

function readSource(table: Table): Source {
  const address = table.read('address', ownAddress, '"192.0.2.5", an address of this machine')
  const ehlo = table.read('ehlo', hostName, '"mail5.example.com", the full name of the address')
  if (address === undefined) throw table.error('address', 'is not there', 'write address = "192.0.2.5"')
  if (ehlo === undefined) throw table.error('ehlo', 'is not there', 'write ehlo = "mail5.example.com"')
  const warmUp = table.has('warm-up') ? readWarmUp(table.table('warm-up')) : null
  table.refuseOthers()
  return { address, ehlo, warmUp }
}

function readWarmUp(table: Table): WarmUp {
  const fromMs = table.read('from', day, '"2026-12-01", the first day')
  const perDay = table.read('per-day', listOf(count(10_000_000)), '[50, 100, 200]: messages of each day')
  if (fromMs === undefined) throw table.error('from', 'is not there', 'write from = "2026-12-01"')
  if (!perDay?.length) throw table.error('per-day', 'is not there', 'write per-day = [50, 100, 200]')
  table.refuseOthers()
  return { fromMs, perDay }
}

type Parse<Value> = (given: unknown) => Value | null

/** A table of the file, which knows the keys that were read. */
class Table {
  readonly #values: Record<string, unknown>
  readonly #path: string
  readonly #read = new Set<string>()

  constructor(values: Record<string, unknown>, path: string) {
    this.#values = values
    this.#path = path
  }

  has(key: string): boolean {
    return Object.hasOwn(this.#values, key)
  }

  /** Returns the value; undefined if the key is not there. `example` says what to write instead of a wrong value. */
  read<Value>(key: string, parse: Parse<Value>, example: string): Value | undefined {
    this.#read.add(key)
    if (!this.has(key)) return undefined
    const value = parse(this.#values[key])
    if (value === null)
      throw this.error(key, `= ${shortOf(this.#values[key])} is not valid`, `write ${example}`)
    return value
  }

  table(key: string): Table {
    const values = this.read(key, tableValues, `[${key}] on a line of its own`)
    return new Table(values!, `${this.#path}: ${key}`)
  }

  tables(key: string, most: number): Table[] {
    const each: Parse<Record<string, unknown>[]> = (given) => listOf(tableValues, most)(given)
    const found = this.read(key, each, `[[${key}]], up to ${most} times`) ?? []
    return found.map((values, index) => new Table(values, `${this.#path}: ${key} ${nameOf(values, index)}`))
  }

  error(key: string, fault: string, mend: string): SettingError {
    return new SettingError(`${this.#path}: ${key} ${fault}: ${mend}`)
  }

  refuseOthers(): void {
    const other = Object.keys(this.#values).find((key) => !this.#read.has(key))
    if (other === undefined) return
    const meant = nearest(other, this.#read)
    throw this.error(
      quoted(other),
      'is unknown',
      meant ? `did you mean ${meant}?` : `write ${[...this.#read].join(', ')}`,
    )
  }
}

function nameOf({ name }: Record<string, unknown>, index: number): string {
  return typeof name === 'string' ? quoted(name) : `no. ${index + 1}`
}

function shortOf(value: unknown): string {
  return quoted(typeof value === 'string' ? value : String(JSON.stringify(value) ?? value))
}

function tableValues(given: unknown): Record<string, unknown> | null {
  const isTable =
    typeof given === 'object' && given !== null && !Array.isArray(given) && !(given instanceof Date)
  return isTable ? (given as Record<string, unknown>) : null
}

function listOf<Value>(parse: Parse<Value>, most = maxEntries): Parse<Value[]> {
  return (given) => {
    if (!Array.isArray(given) || given.length > most) return null
    const values = given.map((one) => parse(one)).filter((one) => one !== null)
    return values.length === given.length ? values : null
  }
}

function count(most: number): Parse<number> {
  return (given) =>
    Number.isInteger(given) && (given as number) >= 1 && (given as number) <= most ? (given as number) : null
}

const mailServer: Parse<string> = (given) => (typeof given === 'string' ? parseDomain(given) : null)

const rateList: Parse<Rate[]> = (given) => listOf(rate, 5)(Array.isArray(given) ? given : [given])

const rate: Parse<Rate> = (given) => {
  const match = typeof given === 'string' && /^(\d{1,9})\/(\w{1,12})$/.exec(given)
  if (!match) return null
  const periodMs = parseDuration(match[2]!)
  const messages = Number(match[1])
  return messages >= 1 && periodMs !== null && periodMs >= 1_000 && periodMs <= dayMs
    ? { count: messages, periodMs }
    : null
}

const pause: Parse<number> = (given) => {
  const ms = typeof given === 'string' ? parseDuration(given) : null
  return ms !== null && ms >= 1_000 && ms <= dayMs ? ms : null
}

const replyCode: Parse<number> = (given) =>
  Number.isInteger(given) && (given as number) >= 400 && (given as number) <= 599 ? (given as number) : null

const enhancedStatus: Parse<string> = (given) =>
  typeof given === 'string' && /^[45]\.(?:\*|\d{1,3}\.(?:\*|\d{1,3}))$/.test(given) ? given : null

const replyText: Parse<string> = (given) =>
  typeof given === 'string' && given.length >= 1 && given.length <= 200 ? given.toLowerCase() : null

const groupName: Parse<string> = (given) =>
  typeof given === 'string' && /^(?:[a-z0-9][a-z0-9-]{0,62}|@(?:local|relay|capture))$/.test(given)
    ? given
    : null

const poolName: Parse<string> = (given) =>
  typeof given === 'string' && /^[a-z0-9][a-z0-9-]{0,31}$/.test(given) && !reservedPools.includes(given)
    ? given
    : null

const uuid: Parse<string> = (given) =>
  typeof given === 'string' && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(given)
    ? given.toLowerCase()
    : null

/** The purposes that a send may have. Mail that names none is unclassified. */
const purpose: Parse<string> = (given) =>
  given === 'transactional' || given === 'unclassified' ? given : null

const ownAddress: Parse<string> = (given) => {
  const found = typeof given === 'string' ? outboundAddresses(given) : null
  return found?.ipv4 && found.ipv6 ? null : (found?.ipv4 ?? found?.ipv6 ?? null)
}

// RFC 5321 4.1.1.1: a client greets with its fully-qualified domain name.
const hostName: Parse<string> = (given) => {
  const name = mailServer(given)
  return name?.includes('.') ? name : null
}

/** Returns the beginning of the day in UTC. TOML has dates of its own, without quotes. */
const day: Parse<number> = (given) => {
  const text = given instanceof TomlDate && given.isDate() ? given.toISOString() : given
  if (typeof text !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(text)) return null
  const date = new Date(`${text}T00:00:00Z`)
  // `Date` reads the 31st of February as the 3rd of March.
  return Number.isNaN(date.getTime()) || !date.toISOString().startsWith(text) ? null : date.getTime()
}
