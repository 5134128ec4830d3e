// The delivery of a send as one picture: one row per recipient on a time axis, in addition to the list in words below it.
import { Send } from 'lucide-react'
import { useEffect, useState } from 'react'
import { classes } from '../../parts/classes.ts'
import { duration } from '../../parts/duration.ts'
import { useIsNarrow } from '../../parts/use-narrow.ts'
import { life } from '../../texts/life.ts'
import { isEnded, type Journey, type Step, type Story } from './journey.ts'
import { fills, lookOf, softs } from './step-look.ts'
import { makeTimeAxis, type TimeAxis } from './time-axis.ts'

const mostLanes = 12
const tickMs = 1_000

export function Picture({ story }: { story: Story }) {
  const isOpen = story.journeys.some(({ status }) => !isEnded(status))
  const nowMs = useNow(isOpen)
  const lanes = story.journeys.slice(0, mostLanes)
  const apart = useIsNarrow() ? 0.3 : 0.15
  const axis = makeTimeAxis(momentsOf(story, lanes, isOpen ? nowMs : null), apart)
  const nowPlace = isOpen ? axis.placeOf(nowMs) : null
  return (
    <div aria-hidden className="grid gap-1 select-none">
      <Axis axis={axis} nowPlace={nowPlace} apart={apart} isNamed={lanes.length > 1} />
      {lanes.map((journey) => (
        <Lane
          key={journey.email}
          journey={journey}
          axis={axis}
          startMs={story.startMs}
          isNamed={lanes.length > 1}
        />
      ))}
      {story.journeys.length > mostLanes && (
        <p className="pt-1 text-sm text-faint">{life.lanesLeft(story.journeys.length - mostLanes)}</p>
      )}
    </div>
  )
}

function useNow(isRunning: boolean): number {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => setNowMs(Date.now()), tickMs)
    return () => clearInterval(timer)
  }, [isRunning])
  return nowMs
}

function momentsOf({ startMs }: Story, lanes: readonly Journey[], nowMs: number | null): number[] {
  const moments = [startMs]
  if (nowMs !== null) moments.push(Math.max(nowMs, startMs))
  for (const { steps, outlook } of lanes) {
    for (const { atMs, endMs } of steps) moments.push(atMs, ...(endMs === null ? [] : [endMs]))
    const next = outlook?.nextAttemptAt
    if (next && Date.parse(next) > startMs) moments.push(Date.parse(next))
  }
  return moments
}

const columns = (isNamed: boolean) =>
  isNamed ? 'sm:grid sm:grid-cols-[minmax(0,200px)_minmax(0,1fr)] sm:gap-4' : ''

interface AxisProps {
  axis: TimeAxis
  /** Null if every delivery is final. */
  nowPlace: number | null
  /** The minimum distance of names, as a share of the width. */
  apart: number
  isNamed: boolean
}

function Axis({ axis, nowPlace, apart, isNamed }: AxisProps) {
  const marks = axis.marks.filter(
    ({ place }) => nowPlace === null || Math.abs(place - nowPlace) >= apart * 0.8 || place === 0,
  )
  return (
    <div className={columns(isNamed)}>
      {isNamed && <span className="hidden sm:block" />}
      <div className="relative mx-3.5 h-6 border-b text-xs text-faint">
        {marks.map(({ place, elapsedMs }) => (
          <Label key={place} place={place}>
            {elapsedMs === 0 ? life.sent : `+${duration(elapsedMs)}`}
          </Label>
        ))}
        {nowPlace !== null && nowPlace >= apart * 0.8 && (
          <Label place={nowPlace} className="font-medium text-accent">
            {life.now}
          </Label>
        )}
      </div>
    </div>
  )
}

/** Keeps labels at the ends within the picture. */
function shiftOf(place: number): string {
  return place < 0.12 ? '-14px' : place > 0.88 ? 'calc(-100% + 14px)' : '-50%'
}

function Label({ place, className, children }: { place: number; className?: string; children: string }) {
  return (
    <span
      className={classes('numbers absolute top-0 whitespace-nowrap', className)}
      style={{ left: `${place * 100}%`, translate: shiftOf(place) }}
    >
      {children}
    </span>
  )
}

interface LaneProps {
  journey: Journey
  axis: TimeAxis
  startMs: number
  isNamed: boolean
}

function Lane({ journey, axis, startMs, isNamed }: LaneProps) {
  const { email, steps } = journey
  return (
    <div className={columns(isNamed)}>
      {isNamed && <p className="truncate pt-1 text-sm leading-9 text-muted sm:pt-0">{email}</p>}
      <div className={classes('relative mx-3.5', isNamed ? 'h-9' : 'h-12')}>
        <Threads journey={journey} axis={axis} startMs={startMs} />
        <Node place={0} tone="ink" icon={Send} title={life.sent} />
        {steps
          .filter(({ kind }) => kind !== 'queued')
          .map((step) => (
            <StepMark key={step.id} step={step} axis={axis} />
          ))}
        <NextMark journey={journey} axis={axis} />
      </div>
      {!isNamed && <Captions journey={journey} axis={axis} />}
    </div>
  )
}

/** Names the steps of a single row below it. If space is short, later steps take precedence. */
function Captions({ journey: { steps }, axis }: Pick<LaneProps, 'journey' | 'axis'>) {
  const isNarrow = useIsNarrow()
  const told: { step: Step; place: number }[] = []
  for (const step of steps.toReversed()) {
    const place = axis.placeOf(step.endMs ?? Date.now())
    const isFree = told.every((other) => Math.abs(other.place - place) >= (isNarrow ? 0.7 : 0.22))
    if (step.kind !== 'queued' && isFree && told.length < 4) told.push({ step, place })
  }
  return (
    <div className="relative mx-3.5 h-10 text-xs text-muted">
      {told.map(({ step, place }) => (
        <span
          key={step.id}
          className="absolute top-0 grid w-max max-w-56 justify-items-center"
          style={{ left: `${place * 100}%`, translate: shiftOf(place) }}
        >
          <span className="font-medium text-ink">{lookOf(step).title}</span>
          <span className="max-w-full truncate">{step.remote?.host}</span>
        </span>
      ))}
    </div>
  )
}

/** The line through a row: solid for activity, dashed for waiting. */
function Threads({ journey, axis, startMs }: Omit<LaneProps, 'isNamed'>) {
  const { steps, outlook, status } = journey
  const ends = [startMs, ...steps.map(({ atMs, endMs }) => Math.max(atMs, endMs ?? atMs))]
  const next = isEnded(status) ? null : outlook?.nextAttemptAt
  const points = next ? [...ends, Math.max(Date.parse(next), ends.at(-1)!)] : ends
  return points.slice(1).map((toMs, index) => {
    const from = axis.placeOf(points[index]!)
    const waits = index > 0 && isWait(steps[index - 1]!)
    return (
      <span
        // biome-ignore lint/suspicious/noArrayIndexKey: a line between two steps has no other name
        key={index}
        className={classes(
          'absolute top-1/2 -mt-px border-t-2',
          waits ? 'border-dashed border-edge' : 'border-line-strong',
        )}
        style={{ left: `${from * 100}%`, width: `${Math.max(0, axis.placeOf(toMs) - from) * 100}%` }}
      />
    )
  })
}

function isWait({ kind, outcome }: Step): boolean {
  return outcome === 'deferred' || ['blocked', 'withheld', 'delayed'].includes(kind)
}

function StepMark({ step, axis }: { step: Step; axis: TimeAxis }) {
  const { icon, tone, title } = lookOf(step)
  const from = axis.placeOf(step.atMs)
  const to = axis.placeOf(step.endMs ?? Math.max(Date.now(), step.atMs))
  return (
    <>
      {step.kind === 'attempt' && (
        <span
          className={classes(
            'absolute top-1/2 h-3 -translate-y-1/2 rounded-full border border-current',
            softs[tone],
          )}
          style={{ left: `calc(${from * 100}% - 4px)`, width: `calc(${(to - from) * 100}% + 8px)` }}
        />
      )}
      <Node
        place={to}
        tone={tone}
        icon={icon}
        title={title}
        number={step.kind === 'attempt' ? step.number : null}
      />
    </>
  )
}

function NextMark({ journey: { outlook, status }, axis }: Pick<LaneProps, 'journey' | 'axis'>) {
  if (isEnded(status) || !outlook?.nextAttemptAt) return null
  return (
    <span
      title={life.next}
      className="absolute top-1/2 size-5 -translate-1/2 rounded-full border-2 border-dashed border-edge bg-surface"
      style={{ left: `${axis.placeOf(Date.parse(outlook.nextAttemptAt)) * 100}%` }}
    />
  )
}

interface NodeProps {
  place: number
  tone: keyof typeof fills | 'ink'
  icon: typeof Send
  title: string
  /** The number of an attempt, shown in place of the icon. It stays readable where a caption has no room. */
  number?: number | null
}

function Node({ place, tone, icon: Icon, title, number }: NodeProps) {
  return (
    <span
      title={title}
      className={classes(
        'absolute top-1/2 grid size-6 -translate-1/2 place-items-center rounded-full ring-3 ring-surface',
        tone === 'ink' ? 'bg-ink text-page' : fills[tone],
      )}
      style={{ left: `${place * 100}%` }}
    >
      {number ? (
        <span className="numbers text-xs font-semibold">{number}</span>
      ) : (
        <Icon size={13} strokeWidth={2.5} />
      )}
    </span>
  )
}
