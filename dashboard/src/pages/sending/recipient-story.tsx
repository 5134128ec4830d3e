// The history of one recipient in words, step by step, with the meaning of each answer and advice.
import { ChevronRight, Clock } from 'lucide-react'
import type { ReactNode } from 'react'
import { StateBadge } from '../../parts/badge.tsx'
import { classes } from '../../parts/classes.ts'
import { duration } from '../../parts/duration.ts'
import { exactTime, Time } from '../../parts/time.tsx'
import { life } from '../../texts/life.ts'
import { isEnded, type Journey, type Outlook, recipientState, type Step } from './journey.ts'
import { StepDetail } from './step-detail.tsx'
import { lookOf, softs } from './step-look.ts'

const toldGapMs = 1_000
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

interface RecipientProps {
  journey: Journey
  startMs: number
  isOpen: boolean
}

/** One of several recipients: its name and state, with the rest folded. */
export function RecipientFold({ journey, startMs, isOpen }: RecipientProps) {
  const { email, steps } = journey
  return (
    <details open={isOpen} className="group border-b last:border-b-0">
      <summary
        data-row
        className="flex min-h-12 list-none flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 -outline-offset-2 hover:bg-hover sm:px-5 [&::-webkit-details-marker]:hidden"
      >
        <ChevronRight
          size={15}
          aria-hidden
          className="shrink-0 text-faint transition-transform group-open:rotate-90"
        />
        <span className="min-w-0 flex-1 basis-40 truncate font-medium">{email}</span>
        <span className="flex sm:w-28">
          <StateBadge state={recipientState(journey)} />
        </span>
        <span className="hidden w-72 truncate text-sm text-faint group-open:invisible lg:block">
          {steps.findLast(({ response }) => response)?.response}
        </span>
      </summary>
      <div className="px-4 pt-1 pb-5 sm:px-5 sm:pl-11">
        <RecipientStory journey={journey} startMs={startMs} />
      </div>
    </details>
  )
}

export function RecipientStory({ journey, startMs }: Omit<RecipientProps, 'isOpen'>) {
  const { steps, outlook, status, email } = journey
  return (
    <ol aria-label={email}>
      <AcceptedStep startMs={startMs} />
      {steps.map((step, index) => (
        <StoryStep
          key={step.id}
          step={step}
          outlook={outlook}
          email={email}
          gapMs={step.atMs - endOf(steps[index - 1], startMs)}
          isLast={index === steps.length - 1 && isEnded(status)}
        />
      ))}
      {!isEnded(status) && <Waiting outlook={outlook} />}
    </ol>
  )
}

function endOf(step: Step | undefined, startMs: number): number {
  return step ? (step.endMs ?? step.atMs) : startMs
}

function AcceptedStep({ startMs }: { startMs: number }) {
  return (
    <Row icon={<span className="size-2 rounded-full bg-ink" />} look="bg-idle-soft">
      <Heading title={life.step.accepted} atMs={startMs} />
      <p className="text-sm text-muted">{life.step.acceptedWhat}</p>
    </Row>
  )
}

interface StoryStepProps {
  step: Step
  outlook: Outlook | null
  email: string
  gapMs: number
  isLast: boolean
}

function StoryStep({ step, outlook, email, gapMs, isLast }: StoryStepProps) {
  const { icon: Icon, tone, title } = lookOf(step)
  const tookMs = step.kind === 'attempt' && step.endMs !== null ? step.endMs - step.atMs : null
  return (
    <>
      {gapMs >= toldGapMs && <Gap ms={gapMs} />}
      <Row icon={<Icon size={14} strokeWidth={2.25} aria-hidden />} look={softs[tone]} isLast={isLast}>
        <Heading title={title} atMs={step.atMs} tookMs={tookMs} />
        <StepDetail step={step} outlook={outlook} email={email} />
      </Row>
    </>
  )
}

function Gap({ ms }: { ms: number }) {
  return (
    <li className="flex gap-3">
      <span aria-hidden className="flex w-7 justify-center">
        <span className="border-l-2 border-dashed border-line-strong" />
      </span>
      <span className="numbers pb-4 text-sm text-faint">{life.after(duration(ms))}</span>
    </li>
  )
}

function Row({
  icon,
  look,
  isLast,
  children,
}: {
  icon: ReactNode
  look: string
  isLast?: boolean
  children: ReactNode
}) {
  return (
    <li className="flex gap-3">
      <span aria-hidden className="flex w-7 shrink-0 flex-col items-center">
        <span className={classes('grid size-7 shrink-0 place-items-center rounded-full', look)}>{icon}</span>
        {!isLast && <span className="w-0 flex-1 border-l border-line-strong" />}
      </span>
      <div className={classes('min-w-0 flex-1 pt-0.5', !isLast && 'pb-5')}>{children}</div>
    </li>
  )
}

function Heading({ title, atMs, tookMs }: { title: string; atMs: number; tookMs?: number | null }) {
  const at = new Date(atMs).toISOString()
  return (
    <div className="flex flex-wrap items-baseline justify-between gap-x-3">
      <h3 className="font-medium">{title}</h3>
      <span className="numbers text-sm text-faint">
        {tookMs != null && tookMs >= 1 && `${life.took(duration(tookMs))} · `}
        <time dateTime={at} title={exactTime(at)}>
          {clock.format(atMs)}
        </time>
      </span>
    </div>
  )
}

/** The next step, if there is one. */
function Waiting({ outlook }: { outlook: Outlook | null }) {
  if (!outlook || outlook.onWire) return null
  const { nextAttemptAt, givenUpAt, isPaused } = { ...outlook, isPaused: outlook.paused }
  const dueMs = nextAttemptAt ? Date.parse(nextAttemptAt) - Date.now() : 0
  return (
    <Row icon={<Clock size={14} aria-hidden />} look="border border-dashed border-edge text-muted" isLast>
      <div className="flex flex-wrap items-baseline justify-between gap-x-3">
        <h3 className="font-medium text-muted">
          {dueMs > 0 ? `${life.next} ${life.nextIn(duration(dueMs))}` : life.nextDue}
        </h3>
        {nextAttemptAt && (
          <time dateTime={nextAttemptAt} className="numbers text-sm text-faint">
            {exactTime(nextAttemptAt)}
          </time>
        )}
      </div>
      {isPaused && <p className="text-sm text-wait">{life.paused}</p>}
      {givenUpAt && (
        <p className="text-sm text-faint">
          {life.givenUp}: <Time value={givenUpAt} />
        </p>
      )}
    </Row>
  )
}
