// The history of each recipient, built from the events: one step per attempt, and what it waits for.
import type { Schemas } from '../../api/client.ts'
import {
  classifications,
  failures,
  type Meaning,
  notTriedAgain,
  statuses,
  subjects,
  triedAgain,
} from '../../texts/replies.ts'

export type Submission = Schemas['Submission']
export type LifeEvent = Schemas['DeliveryEvent']
export type Life = Schemas['SubmissionLife']
export type Outlook = Life['recipients'][number]
export type Exchange = Life['exchanges'][number]

export type StepKind =
  | 'queued'
  | 'attempt'
  | 'blocked'
  | 'withheld'
  | 'delayed'
  | 'returned'
  | 'failed'
  | 'suppressed'
  | 'cancelled'
  | 'complained'

export interface Step {
  id: string
  kind: StepKind
  /** When it happened. For an attempt: when it began. */
  atMs: number
  /** When an attempt had its answer. Equals `atMs` for an instant step. Null while an attempt runs. */
  endMs: number | null
  /** The outcome of an attempt. */
  outcome: 'delivered' | 'deferred' | 'bounced' | 'failed' | 'underway' | null
  number: number | null
  remote: LifeEvent['remote']
  exchange: Exchange | null
  response: string | null
  enhancedStatus: string | null
  classification: string | null
}

type RecipientStatus = Submission['recipients'][number]['status']

export interface Journey {
  email: string
  status: RecipientStatus
  outlook: Outlook | null
  steps: Step[]
}

export interface Story {
  startMs: number
  journeys: Journey[]
}

const recipientEnds = new Set<string>(['delivered', 'bounced', 'failed', 'suppressed'])

export function isSettled({ status }: Pick<Submission, 'status'>): boolean {
  return status !== 'pending'
}

/** Refines a recipient's status: separates cancelled from failed, and complained from delivered. */
export function recipientState({ status, outlook, steps }: Journey): string {
  if (steps.some(({ kind }) => kind === 'complained')) return 'complained'
  return status === 'failed' && outlook?.failureCode === 'cancelled' ? 'cancelled' : status
}

export function isEnded(status: string): boolean {
  return recipientEnds.has(status)
}

/** Returns the recipients in their order. Events without a recipient belong to all of them. */
export function tellStory(
  submission: Submission,
  events: readonly LifeEvent[],
  life: Life | undefined,
): Story {
  const exchanges = new Map((life?.exchanges ?? []).map((exchange) => [exchange.eventId, exchange]))
  const byRecipient = Map.groupBy(events, ({ recipient }) => recipient ?? '')
  const outlooks = new Map((life?.recipients ?? []).map((outlook) => [outlook.email, outlook]))
  return {
    startMs: Date.parse(submission.createdAt),
    journeys: submission.recipients.map(({ email, status }) => ({
      email,
      status,
      outlook: outlooks.get(email) ?? null,
      steps: stepsOf(byRecipient.get(email) ?? [], exchanges),
    })),
  }
}

function stepsOf(events: readonly LifeEvent[], exchanges: ReadonlyMap<string, Exchange>): Step[] {
  const steps: Step[] = []
  for (const event of events) {
    const open = steps.findLast((step) => step.outcome === 'underway' && step.number === event.attempt)
    if (event.type === 'accepted') continue
    if (open && event.attempt !== null) Object.assign(open, answerOf(event, exchanges))
    else steps.push(stepOf(event, exchanges, steps))
  }
  return steps
}

function answerOf(event: LifeEvent, exchanges: ReadonlyMap<string, Exchange>) {
  return {
    id: event.id,
    endMs: Date.parse(event.at),
    outcome: event.type as Step['outcome'],
    remote: event.remote,
    exchange: exchanges.get(event.id) ?? null,
    response: event.response,
    enhancedStatus: event.enhancedStatus,
    classification: event.classification,
  }
}

function stepOf(event: LifeEvent, exchanges: ReadonlyMap<string, Exchange>, before: readonly Step[]): Step {
  const answer = answerOf(event, exchanges)
  const common = { atMs: answer.endMs, number: event.attempt }
  if (event.type === 'attempted')
    return { ...answer, ...common, kind: 'attempt', endMs: null, outcome: 'underway' }
  if (event.attempt !== null && event.type !== 'complained') return { ...answer, ...common, kind: 'attempt' }
  return { ...answer, ...common, kind: kindOf(event, before), outcome: null }
}

/** Returns the kind of a step outside attempts. A report after a delivery concerns the delivered mail. */
function kindOf({ type, classification }: LifeEvent, before: readonly Step[]): StepKind {
  if (type === 'bounced') return 'returned'
  if (type !== 'deferred') return type === 'attempted' || type === 'delivered' ? 'queued' : (type as StepKind)
  if (before.some(({ outcome }) => outcome === 'delivered')) return 'delayed'
  return classification === 'policy' ? 'withheld' : 'blocked'
}

/** Returns a step's meaning and advice, or null if its name is enough. */
export function meaningOf(step: Step, outlook: Outlook | null): Meaning | null {
  if (step.outcome === 'delivered' || step.outcome === 'underway') return null
  if (['suppressed', 'cancelled', 'failed'].includes(step.kind))
    return failures[outlook?.failureCode ?? step.kind] ?? failures[step.kind] ?? null
  const isAnswer = step.kind === 'attempt' || step.kind === 'returned' || step.kind === 'blocked'
  if (!isAnswer || (step.outcome === 'deferred' && step.response === null)) return null
  const kind = step.classification ?? 'other'
  const { means, todo } =
    (isCertain.has(kind) ? null : meaningOfCode(step.enhancedStatus)) ??
    classifications[kind] ??
    classifications['other']!
  if (step.kind === 'blocked') return { means, todo }
  return { means, todo: step.outcome === 'deferred' ? triedAgain(todo) : notTriedAgain(todo) }
}

/** Kinds that come from the server's text and are more precise than its status. */
const isCertain = new Set(['greylisted', 'rate_limited', 'spam', 'tls', 'expired'])

/** RFC 3463: class, subject and detail. The class only distinguishes permanent from temporary. */
function meaningOfCode(code: string | null): Meaning | null {
  const [, subject, detail] = code?.split('.') ?? []
  if (subject === undefined || detail === undefined) return null
  return statuses[`${subject}.${detail}`] ?? subjects[subject] ?? null
}
