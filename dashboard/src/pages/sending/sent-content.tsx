// The stored content of a send without an inbox: addresses, HTML, text, and its expiry.
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { Card } from '../../parts/card.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { MailViews } from '../../parts/mail/mail-views.tsx'
import { exactTime } from '../../parts/time.tsx'
import { life } from '../../texts/life.ts'
import { isSettled, type Submission } from './journey.ts'

type Content = NonNullable<Schemas['SubmissionContent']['content']>
type Mailbox = Content['to'][number]

const dayText = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' })

export function SentContent({ submission }: { submission: Submission }) {
  const params = { path: { submissionId: submission.id } }
  const query = useQuery({
    // Not under the submission's key, because each event would sanitize the HTML again.
    queryKey: ['sent-content', submission.id],
    queryFn: () => read(api.GET('/v1/submissions/{submissionId}/content', { params })),
  })
  return (
    <Card title={life.content}>
      <Loaded query={query}>
        {({ content }) =>
          content ? (
            <Letter content={content} submission={submission} />
          ) : (
            <p className="text-muted">{life.contentGone}</p>
          )
        }
      </Loaded>
    </Card>
  )
}

function Letter({ content, submission }: { content: Content; submission: Submission }) {
  const { html, remoteImages, text, cut } = content
  return (
    <div className="grid min-w-0 grid-cols-[minmax(0,1fr)] gap-4">
      <DefinitionList items={envelopeOf(content, submission)} />
      <p className="text-sm text-muted">
        <Kept until={content.keptUntil} isSettled={isSettled(submission)} />
      </p>
      {cut && <p className="text-sm text-wait">{life.contentCut}</p>}
      <MailViews id={submission.id} html={html} remoteImages={remoteImages} text={text} />
    </div>
  )
}

function envelopeOf({ to, replyTo }: Content, { from, subject }: Submission): [string, ReactNode][] {
  const items: [string, ReactNode][] = [
    [life.from, written(from)],
    [life.to, to.map(written).join(', ')],
  ]
  if (replyTo) items.push([life.replyTo, written(replyTo)])
  items.push([life.subject, subject])
  return items
}

function written({ email, name }: Mailbox): string {
  return name ? `${name} <${email}>` : email
}

/** Expired content stays while recipients wait, or until the next batch deletion. */
function Kept({ until, isSettled }: { until: string; isSettled: boolean }) {
  const at = new Date(until)
  if (at.getTime() <= Date.now()) return isSettled ? life.contentGoes : life.contentWaits
  return (
    <>
      {life.contentUntil}{' '}
      <time dateTime={until} title={exactTime(until)}>
        {dayText.format(at)}
      </time>
      .
    </>
  )
}
