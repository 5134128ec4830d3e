// The page of one send: each recipient's history from acceptance to its end, as one picture and in words.
import { getRouteApi } from '@tanstack/react-router'
import { Ban, Mail, SearchX } from 'lucide-react'
import { useState } from 'react'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { Empty } from '../../parts/empty.tsx'
import { isMissing } from '../../parts/error-note.tsx'
import { Button, ButtonLink } from '../../parts/form/button.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { useMay } from '../../shell/session.ts'
import { life } from '../../texts/life.ts'
import { shell } from '../../texts/shell.ts'
import { CancelDialog } from './cancel-dialog.tsx'
import { isSettled, type Journey, recipientState, type Story, tellStory } from './journey.ts'
import { type Telling, useTelling } from './life-query.ts'
import { Picture } from './picture.tsx'
import { RecipientFilter } from './recipient-filter.tsx'
import { RecipientFold, RecipientStory } from './recipient-story.tsx'
import { SentContent } from './sent-content.tsx'
import { SubmissionFacts } from './submission-facts.tsx'
import { stateOf } from './submission-state.ts'

const route = getRouteApi('/frame/sending/$submissionId')
const crumbs = [{ label: shell.pages.sending, to: '/sending' }]

export function SubmissionLife() {
  const { submissionId } = route.useParams()
  const query = useTelling(submissionId)
  if (!query.data)
    return (
      <Page title={shell.found.submission} crumbs={crumbs}>
        {isMissing(query.error) ? (
          <Empty
            icon={SearchX}
            title={life.gone}
            action={<ButtonLink to="/sending">{shell.pages.sending}</ButtonLink>}
          >
            {life.goneWhat}
          </Empty>
        ) : (
          <Loaded query={query}>{() => null}</Loaded>
        )}
      </Page>
    )
  return <LifePage key={submissionId} telling={query.data} />
}

function LifePage({ telling }: { telling: Telling }) {
  const { submission, events } = telling
  const story = tellStory(submission, events, telling.life)
  return (
    <Page
      title={submission.subject || life.erasedSubject}
      badge={<StateBadge state={stateOf(submission)} />}
      lead={summaryOf(story.journeys)}
      crumbs={crumbs}
      actions={<Actions telling={telling} />}
    >
      <div className="grid gap-5">
        <Card
          title={life.picture}
          lead={life.pictureHint}
          actions={<LiveMark isLive={!isSettled(submission)} />}
        >
          <Picture story={story} />
        </Card>
        <Recipients story={story} />
        {telling.life.inboxId === null && <SentContent submission={submission} />}
        <SubmissionFacts telling={telling} />
      </div>
    </Page>
  )
}

const order = ['delivered', 'pending', 'deferred', 'bounced', 'failed', 'suppressed'] as const

function summaryOf(journeys: readonly Journey[]): string {
  const counts = Map.groupBy(journeys, ({ status }) => status)
  const told = order.flatMap((status) => {
    const count = counts.get(status)?.length ?? 0
    return count > 0 ? [life.summary[status](count)] : []
  })
  const to = journeys.length === 1 ? journeys[0]!.email : life.toAll(journeys.length)
  return journeys.length === 1 ? to : `${to}: ${told.join(', ')}.`
}

function LiveMark({ isLive }: { isLive: boolean }) {
  if (!isLive) return null
  return (
    <span title={life.liveWhat} className="flex items-center gap-2 text-sm text-muted">
      <span aria-hidden className="size-2 animate-breathe rounded-full bg-good" />
      {life.live}
    </span>
  )
}

function Actions({ telling: { submission, life: more } }: { telling: Telling }) {
  const mayChange = useMay('change')
  const [isAsking, setIsAsking] = useState(false)
  const waiting = more.recipients.filter(({ givenUpAt, onWire }) => givenUpAt !== null && !onWire).length
  const thread = more.inboxId && more.threadId ? `/mail/${more.inboxId}/${more.threadId}` : null
  return (
    <>
      {thread && (
        <ButtonLink to={thread} icon={Mail}>
          {life.openMessage}
        </ButtonLink>
      )}
      {mayChange && waiting > 0 && (
        <Button variant="danger" icon={Ban} onClick={() => setIsAsking(true)}>
          {life.cancel}
        </Button>
      )}
      <CancelDialog
        open={isAsking}
        onClose={() => setIsAsking(false)}
        submissionId={submission.id}
        waiting={waiting}
      />
    </>
  )
}

const filteredFrom = 8

function Recipients({ story: { journeys, startMs } }: { story: Story }) {
  const [state, setState] = useState('')
  const [only] = journeys
  if (journeys.length === 1 && only)
    return (
      <Card title={only.email} actions={<StateBadge state={recipientState(only)} />}>
        <RecipientStory journey={only} startMs={startMs} />
      </Card>
    )
  const shown = journeys.filter((journey) => state === '' || recipientState(journey) === state)
  const opened = journeys.find((journey) => journey.status !== 'delivered') ?? only
  return (
    <Card
      title={life.recipients}
      flush
      actions={
        journeys.length > filteredFrom && (
          <RecipientFilter journeys={journeys} state={state} onChange={setState} />
        )
      }
    >
      {shown.length === 0 && <p className="px-5 py-6 text-muted">{life.noneOfThese}</p>}
      {shown.map((journey) => (
        <RecipientFold key={journey.email} journey={journey} startMs={startMs} isOpen={journey === opened} />
      ))}
    </Card>
  )
}
