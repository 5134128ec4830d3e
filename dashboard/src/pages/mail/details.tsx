// All facts about a message: its addresses, the result and meaning of each check, and its ids.
import type { ReactNode } from 'react'
import { Badge, StateBadge, type Tone } from '../../parts/badge.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { exactTime } from '../../parts/time.tsx'
import { parts } from '../../texts/parts.ts'
import { reading } from '../../texts/reading.ts'
import { verdicts } from '../../texts/verdicts.ts'
import type { Mailbox, Message } from './mail-queries.ts'

type Security = NonNullable<Message['inboundSecurity']>
type Item = readonly [name: string, value: ReactNode]

export function Details({ message }: { message: Message }) {
  return (
    <div className="grid min-w-0 gap-5 rounded-md border bg-sunken p-4">
      <DefinitionList items={addressesOf(message)} />
      {message.inboundSecurity && <Checks security={message.inboundSecurity} />}
      <DefinitionList items={idsOf(message)} />
    </div>
  )
}

function addressesOf({ from, to, cc, bcc, replyTo, createdAt }: Message): Item[] {
  return [
    [reading.sender, written([from])],
    [reading.to, to.length > 0 ? written(to) : reading.toNobody],
    ...(cc?.length ? [[reading.cc, written(cc)] as const] : []),
    ...(bcc?.length ? [[reading.bcc, written(bcc)] as const] : []),
    ...(replyTo ? [[reading.replyTo, written([replyTo])] as const] : []),
    [parts.time, exactTime(createdAt)],
  ]
}

function written(mailboxes: readonly Mailbox[]): string {
  return mailboxes.map(({ name, email }) => (name ? `${name} <${email}>` : email)).join(', ')
}

function Checks({ security }: { security: Security }) {
  return (
    <div className="grid gap-2">
      <DefinitionList
        items={[
          ...senderChecks(security),
          ...wayChecks(security),
          ...contentChecks(security),
          ...textFacts(security),
        ]}
      />
      <p className="text-sm text-faint">{verdicts.distrust}</p>
    </div>
  )
}

function senderChecks({ authentication }: Security): Item[] {
  return (['dmarc', 'spf', 'dkim'] as const).map((name) => {
    const result = authentication[name]
    return [
      verdicts.names[name],
      <Check key={name} state={<StateBadge state={result} />} meaning={verdicts[name][result]} />,
    ]
  })
}

function wayChecks({ smtp: { remoteIp, helo, tls }, listedBy }: Security): Item[] {
  const { names } = verdicts
  return [
    [
      names.tls,
      <Check
        key="tls"
        state={own(tls.encrypted ? 'good' : 'wait', tls.encrypted ? verdicts.tlsOn : verdicts.tlsOff)}
        meaning={tls.encrypted ? verdicts.encrypted(tls.protocol) : verdicts.plain}
      />,
    ],
    [names.host, helo ? verdicts.from(remoteIp, helo) : verdicts.fromUnnamed(remoteIp)],
    ...(listedBy ? [[names.listed, verdicts.listedBy(listedBy.join(', '))] as const] : []),
  ]
}

function contentChecks({ spam, attachments }: Security): Item[] {
  const { names } = verdicts
  const scan = (
    <Check key="scan" state={<StateBadge state={attachments} />} meaning={verdicts.scan[attachments]} />
  )
  return [...(spam ? [[names.spam, <Spam key="spam" spam={spam} />] as const] : []), [names.scan, scan]]
}

/** Facts about the text, empty if none are known. */
function textFacts({ content }: Security): Item[] {
  if (!content) return []
  const facts = [
    ...(content.hiddenText > 0 ? [verdicts.hiddenText(content.hiddenText)] : []),
    ...(content.invisibleCharacters > 0 ? [verdicts.invisible(content.invisibleCharacters)] : []),
    ...(content.bidiOverrides > 0 ? [verdicts.overrides] : []),
    ...(content.textDiffersFromHtml ? [verdicts.differs] : []),
  ]
  return facts.length === 0 ? [] : [[verdicts.names.content, facts.join(' ')]]
}

function Spam({ spam: { score, action, symbols } }: { spam: NonNullable<Security['spam']> }) {
  const isSuspicious = action !== 'no action'
  return (
    <Check
      state={own(isSuspicious ? 'bad' : 'good', isSuspicious ? verdicts.spamHigh : verdicts.spamLow)}
      meaning={verdicts.spam(score.toFixed(1), action)}
    >
      {symbols.length > 0 && (
        <details className="mt-1 text-sm">
          <summary className="text-faint">{verdicts.symbols}</summary>
          <code className="text-sm break-words">{symbols.join(' ')}</code>
        </details>
      )}
    </Check>
  )
}

const own = (tone: Tone, word: string) => <Badge tone={tone}>{word}</Badge>

function Check({
  state,
  meaning,
  children,
}: {
  state: ReactNode
  meaning?: string | undefined
  children?: ReactNode
}) {
  return (
    <div className="grid gap-0.5">
      <div>{state}</div>
      {meaning && <span className="text-sm text-muted">{meaning}</span>}
      {children}
    </div>
  )
}

function idsOf({ id, threadId, internetMessageId, delivery, metadata }: Message): Item[] {
  const copyable = (name: string, text: string): Item => [
    name,
    <span key={name} className="flex min-w-0 items-center gap-1">
      <code className="min-w-0 text-sm break-all">{text}</code>
      <CopyButton text={text} what={name} />
    </span>,
  ]
  return [
    copyable(reading.ids.message, id),
    copyable(reading.ids.thread, threadId),
    copyable(reading.ids.internet, internetMessageId),
    ...(delivery.submissionId ? [copyable(reading.ids.submission, delivery.submissionId)] : []),
    ...(Object.keys(metadata).length > 0 ? [copyable(reading.metadata, JSON.stringify(metadata))] : []),
  ]
}
