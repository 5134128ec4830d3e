// The rules of destination groups: how much mail each takes, and which replies pause it. A group is one mail provider.
import { classify, type ReplyStage } from '../../mail/bounce/reply-code.ts'
import { isWithin, registeredDomain } from '../../mailauth/dmarc/dns-name.ts'
import { readRoute, specialRoutes } from '../route-policy.ts'
import type { Source, WarmUp } from '../source-pools.ts'

/** At most `count` messages in any period of `periodMs`. */
export interface Rate {
  count: number
  periodMs: number
}

/** A reply that pauses the group. A part that is null matches every reply. */
export interface ReplyRule {
  code: number | null
  /** An enhanced status code, such as `4.7.28`, or its beginning with a star, such as `4.7.*`. */
  enhanced: string | null
  /** A part of the reply's text, in lower case. */
  text: string | null
  pauseMs: number
}

export interface GroupRules {
  connections: number
  /** The connections before the first success. Absent: a few. */
  firstConnections?: number
  messagesPerConnection: number | null
  rates: readonly Rate[]
  replies: readonly ReplyRule[]
  /** The plan of a new source address. Only for the group of all of its messages. */
  warmUp?: WarmUp
}

export interface NamedGroup extends GroupRules {
  name: string
  /** The group has the mail servers with these names, and with names below them. */
  mx: readonly string[]
}

export interface ShapingRules {
  /** The groups of providers, in the order to try them. */
  groups: readonly NamedGroup[]
  /** The rules of every other group. */
  usual: GroupRules
}

export const usualRules: GroupRules = {
  connections: 10,
  messagesPerConnection: null,
  rates: [],
  replies: [],
}

const unlimited = { rates: [], replies: [] }

/** For queues of this service's own servers, of the smarthost, and of the capture server. */
const specialRules: GroupRules = {
  connections: 20,
  firstConnections: 20,
  messagesPerConnection: null,
  ...unlimited,
}

/**
 * Providers whose mail servers have names in several domains, or that want fewer messages in a connection. The figures are
 * cautious, because no provider publishes all of its limits.
 */
export const builtInGroups: readonly NamedGroup[] = [
  {
    name: 'google',
    mx: ['google.com', 'googlemail.com'],
    connections: 20,
    messagesPerConnection: 100,
    ...unlimited,
  },
  {
    name: 'microsoft',
    mx: ['outlook.com', 'mx.microsoft'],
    connections: 20,
    messagesPerConnection: 100,
    ...unlimited,
  },
  { name: 'yahoo', mx: ['yahoodns.net'], connections: 10, messagesPerConnection: 20, ...unlimited },
  {
    name: 'icloud',
    mx: ['icloud.com', 'apple.com'],
    connections: 10,
    messagesPerConnection: 50,
    ...unlimited,
  },
  { name: 'gmx', mx: ['gmx.net', 'web.de'], connections: 10, messagesPerConnection: 50, ...unlimited },
]

export const builtInRules: ShapingRules = { groups: builtInGroups, usual: usualRules }

/** A group and its rules. `isNamed`: a table names it, so the number of such groups is small. */
export interface DestinationGroup {
  name: string
  /** The name without the source address. */
  provider: string
  /** The source of its connections. Null: the queue has no pool. Providers count the mail of each address on its own. */
  source: Source | null
  rules: GroupRules
  isNamed: boolean
  /** Its servers are nodes of this deployment. They restart within seconds, so their 421 pauses nothing. */
  isOwn: boolean
}

/**
 * Returns the group of a mail server: the first one that names its host, otherwise its registered domain by the public
 * suffix list. A special queue, such as `@relay`, is a group of its own. With a source, it is the group of both.
 */
export function groupOf(
  rules: ShapingRules,
  route: string,
  host: string,
  source: Source | null = null,
): DestinationGroup {
  const { name, ...group } = providerOf(rules, route, host)
  return { ...group, name: source === null ? name : sourceGroupName(name, source), provider: name, source }
}

export function sourceGroupName(provider: string, { address }: Source): string {
  return `${provider} from ${address}`
}

/** The group of all messages from a source that is warming up. It limits nothing else. */
export function warmUpGroup(source: Source, warmUp: WarmUp): DestinationGroup {
  const most = 1_000_000
  const rules = {
    connections: most,
    firstConnections: most,
    messagesPerConnection: null,
    ...unlimited,
    warmUp,
  }
  const name = `source ${source.address}`
  return { name, provider: name, source, rules, isNamed: false, isOwn: false }
}

function providerOf(
  { groups, usual }: ShapingRules,
  route: string,
  host: string,
): Omit<DestinationGroup, 'provider' | 'source'> {
  const { hop } = readRoute(route)
  if (hop.startsWith('@')) {
    const named = groups.find(({ name }) => name === hop)
    const isOwn = hop === specialRoutes.local || hop === specialRoutes.capture
    return { name: hop, rules: named ?? specialRules, isNamed: true, isOwn }
  }
  const lower = host.toLowerCase()
  const named = groups.find(({ mx }) => mx.some((name) => isWithin(lower, name)))
  if (named) return { name: named.name, rules: named, isNamed: true, isOwn: false }
  return { name: registeredDomain(lower), rules: usual, isNamed: false, isOwn: false }
}

export interface ShapedReply {
  code: number
  enhanced: string | null
  text: string
}

/** The first rule that the reply matches. */
export function ruleFor({ replies }: GroupRules, { code, enhanced, text }: ShapedReply): ReplyRule | null {
  const lower = text.toLowerCase()
  const matched = replies.find(
    (rule) =>
      (rule.code === null || rule.code === code) &&
      (rule.enhanced === null || matchesStatus(rule.enhanced, enhanced)) &&
      (rule.text === null || lower.includes(rule.text)),
  )
  return matched ?? null
}

function matchesStatus(pattern: string, status: string | null): boolean {
  if (status === null) return false
  return pattern.endsWith('*') ? status.startsWith(pattern.slice(0, -1)) : status === pattern
}

export type Load = 'rate' | 'possible'

/** Whether the reply is about connections, such as "too many sessions", and not about messages. */
function isAboutConnections({ text }: ShapedReply): boolean {
  return /connection|session/i.test(text)
}

/**
 * Returns whether the reply means that we send too much. Only words or a status about a rate are certain. RFC 5321 3.8: a
 * server says 421 when it closes the channel, also because it stops. RFC 3463 3.5: X.4.x is about the network, such as a
 * timeout. RFC 3463 3.8: X.7 is about policy, which may be a limit. Greylisting is not: the same message is taken later.
 */
export function loadOf(reply: ShapedReply, stage: ReplyStage): Load | null {
  const { code, enhanced } = reply
  if (code < 400 || code >= 500) return null
  const { classification } = classify(reply, stage)
  if (classification === 'greylisted') return null
  // 4.2 is about one mailbox, which may get too much mail from everyone.
  if (classification === 'rate_limited' && enhanced?.startsWith('4.2.')) return null
  if (classification === 'rate_limited' && !isAboutConnections(reply)) return 'rate'
  if (enhanced?.startsWith('4.4.')) return null
  const mayBeLoad = classification === 'rate_limited' || code === 421 || enhanced?.startsWith('4.7.')
  return mayBeLoad ? 'possible' : null
}

/** Whether the server may have reached a limit of this connection: it closes it, and does not say that we send too fast. */
export function mayEndConnectionOnly(reply: ShapedReply, stage: ReplyStage): boolean {
  if (reply.code !== 421) return false
  // Such as Exim's "too many messages in this connection".
  return classify(reply, stage).classification !== 'rate_limited' || isAboutConnections(reply)
}

/**
 * Whether the reply means that the server takes no mail from our address, such as 554 5.7.1 "Client host blocked using
 * zen.example". A reply to the message itself may be about its content, and others about the sender's domain.
 */
export function meansBlocked(reply: ShapedReply, stage: ReplyStage, address: string): boolean {
  if (stage === 'data' || stage === 'message') return false
  const { code, text } = reply
  const { classification } = classify(reply, stage)
  const isBlock = classification === 'spam' || (classification === 'policy' && /\bblocked\b/i.test(text))
  if (!isBlock) return false
  // The address that the server sees is another one behind a NAT.
  const namesAddress = text.includes(address) || /\b\d{1,3}(?:\.\d{1,3}){3}\b/.test(text)
  if (stage === 'connect') {
    // Before MAIL, the server knows nothing of us but our address and our name.
    if (code >= 500) return true
    // A fault of its own that will pass may have such words too, such as the name of its filter.
    const isAboutUs = namesAddress || /\b(?:your ip|client host)\b/i.test(text)
    return isAboutUs && /block|black ?list|deny ?list|\blisted\b|denied/i.test(text)
  }
  if (namesAddress) return true
  return /\b(?:client|ip|host|network)\b/i.test(text) && !/\b(?:sender|domain|recipient)\b/i.test(text)
}
