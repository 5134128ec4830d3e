// The ids of a submission, with copy buttons and links, and its raw events.
import { Link } from '@tanstack/react-router'
import { ChevronRight } from 'lucide-react'
import type { ReactNode } from 'react'
import { Card } from '../../parts/card.tsx'
import { CodeBlock } from '../../parts/code-block.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { Time } from '../../parts/time.tsx'
import { life } from '../../texts/life.ts'
import { sending } from '../../texts/sending.ts'
import type { Telling } from './life-query.ts'

export function SubmissionFacts({ telling }: { telling: Telling }) {
  return (
    <Card title={life.details}>
      <div className="text-sm">
        <DefinitionList items={factsOf(telling)} />
      </div>
      <RawEvents telling={telling} />
    </Card>
  )
}

function factsOf({ submission, life: more }: Telling): [string, ReactNode][] {
  const { id, from, purpose, createdAt, queueId, metadata } = submission
  const facts: [string, ReactNode][] = [
    [life.from, from.name ? `${from.name} <${from.email}>` : from.email],
    [life.purpose, sending.purposes[purpose]],
    [life.accepted, <Time key="at" value={createdAt} />],
    [life.submissionId, <Id key="id" id={id} what={life.submissionId} />],
    [life.queueId, queueId ? <Id key="queue" id={queueId} what={life.queueId} /> : life.queueIdNone],
  ]
  if (more.inboxId)
    facts.push([
      life.inbox,
      <Id key="inbox" id={more.inboxId} what={life.inbox} to={`/mail/${more.inboxId}`} />,
    ])
  if (more.threadId)
    facts.push([
      life.threadId,
      <Id
        key="thread"
        id={more.threadId}
        what={life.threadId}
        to={`/mail/${more.inboxId}/${more.threadId}`}
      />,
    ])
  if (more.messageId)
    facts.push([
      life.messageId,
      <Id key="message" id={more.messageId} what={life.messageId} to={`/messages/${more.messageId}`} />,
    ])
  if (Object.keys(metadata).length > 0)
    facts.push([
      life.metadata,
      <code key="metadata" className="break-all">
        {JSON.stringify(metadata)}
      </code>,
    ])
  return facts
}

function Id({ id, what, to }: { id: string; what: string; to?: string }) {
  const text = <code className="min-w-0 break-all">{id}</code>
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-1">
      {to ? (
        <Link to={to} className="min-w-0 text-accent underline underline-offset-3">
          {text}
        </Link>
      ) : (
        text
      )}
      <span className="-my-1">
        <CopyButton text={id} what={what} />
      </span>
    </span>
  )
}

function RawEvents({ telling: { events } }: { telling: Telling }) {
  return (
    <details className="group mt-4">
      <summary className="flex w-fit list-none items-center gap-1.5 rounded-sm text-sm text-muted hover:text-ink [&::-webkit-details-marker]:hidden">
        <ChevronRight size={15} aria-hidden className="transition-transform group-open:rotate-90" />
        {life.raw}
      </summary>
      <div className="mt-3">
        <CodeBlock code={JSON.stringify(events, null, 2)} label={life.rawLabel} />
      </div>
    </details>
  )
}
