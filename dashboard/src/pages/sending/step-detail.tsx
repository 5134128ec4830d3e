// One step in full: the server, the connection, its answer, the meaning, and advice.
import { Link } from '@tanstack/react-router'
import { LockKeyhole, LockKeyholeOpen } from 'lucide-react'
import type { ReactNode } from 'react'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Conversation } from '../../parts/mail/conversation.tsx'
import { life } from '../../texts/life.ts'
import { type Meaning, stages } from '../../texts/replies.ts'
import { meaningOf, type Outlook, type Step } from './journey.ts'

interface StepDetailProps {
  step: Step
  outlook: Outlook | null
  email: string
}

const whats: Partial<Record<Step['kind'] | NonNullable<Step['outcome']>, string>> = {
  delivered: life.step.deliveredWhat,
  underway: life.step.underwayWhat,
  blocked: life.step.blockedWhat,
  withheld: life.step.withheldWhat,
  delayed: life.step.delayedWhat,
  returned: life.step.returnedWhat,
  complained: life.step.complainedWhat,
}

export function StepDetail({ step, outlook, email }: StepDetailProps) {
  const isUnknown = step.outcome === 'deferred' && step.response === null && step.remote !== null
  const what = isUnknown ? life.step.unknownWhat : whats[step.outcome ?? step.kind]
  const meaning = meaningOf(step, outlook)
  const facts = factsOf(step)
  return (
    <div className="mt-1 grid gap-2.5">
      {what && <p className="text-sm text-balance text-muted">{what}</p>}
      {facts.length > 0 && (
        <div className="text-sm">
          <DefinitionList items={facts} />
        </div>
      )}
      {step.exchange?.conversation && <Conversation conversation={step.exchange.conversation} />}
      {meaning && (
        <Explanation meaning={meaning} link={<StepLink step={step} outlook={outlook} email={email} />} />
      )}
    </div>
  )
}

function factsOf({ remote, exchange, response, enhancedStatus, kind, outcome }: Step): [string, ReactNode][] {
  const facts: [string, ReactNode][] = []
  if (remote)
    facts.push([
      life.server,
      <span key="server">
        {remote.host} <span className="numbers text-faint">{remote.ip}</span>
      </span>,
    ])
  if (remote)
    facts.push([life.encryption, <Encryption key="tls" tls={remote.tls} cipher={exchange?.cipher ?? null} />])
  if (exchange?.tlsPolicy)
    facts.push([life.tlsPolicy, life.tlsPolicies[exchange.tlsPolicy] ?? exchange.tlsPolicy])
  if (exchange?.tlsViolation) facts.push([life.tlsViolation, exchange.tlsViolation])
  if (response && !['complained', 'cancelled', 'suppressed'].includes(kind))
    facts.push([
      remote || kind === 'returned' ? life.reply : kind === 'failed' ? life.lastReply : life.why,
      <code key="reply" className="break-words">
        {response}
      </code>,
    ])
  if (exchange?.stage && stages[exchange.stage])
    facts.push([outcome === 'delivered' ? life.acceptedAfter : life.rejectedAfter, stages[exchange.stage]])
  if (enhancedStatus && !response?.includes(enhancedStatus)) facts.push([life.code, enhancedStatus])
  return facts
}

function Encryption({ tls, cipher }: { tls: string | null; cipher: string | null }) {
  const Icon = tls ? LockKeyhole : LockKeyholeOpen
  return (
    <span className="inline-flex min-w-0 items-baseline gap-1.5">
      <Icon
        size={13}
        aria-hidden
        className={tls ? 'shrink-0 self-center text-good' : 'shrink-0 self-center text-wait'}
      />
      {tls ?? life.plain}
      {cipher && <span className="min-w-0 break-all text-faint">{cipher}</span>}
    </span>
  )
}

function Explanation({ meaning: { means, todo }, link }: { meaning: Meaning; link: ReactNode }) {
  return (
    <div className="rounded-md border bg-sunken px-3 py-2.5 text-sm">
      <p className="text-balance">
        <span className="font-medium">{life.means}:</span> {means}
      </p>
      <p className="mt-0.5 text-balance text-muted">
        <span className="font-medium">{life.todo}:</span> {todo} {link}
      </p>
    </div>
  )
}

const link = 'font-medium text-accent underline underline-offset-3'

/** A link to the page where the problem can be fixed. */
function StepLink({ step, outlook, email }: StepDetailProps) {
  const code = step.enhancedStatus ?? ''
  const suppresses = step.kind === 'suppressed' || /^5\.1\.(1|2|3|6|10)$/.test(code)
  if (suppresses && outlook !== null)
    return (
      <Link to="/suppressions" search={{ q: email }} className={link}>
        {life.suppressionLink}
      </Link>
    )
  if (step.kind === 'withheld' || /^[45]\.(1\.[78]|7\.2\d)$/.test(code))
    return (
      <Link to="/domains" className={link}>
        {life.domainsLink}
      </Link>
    )
  return null
}
