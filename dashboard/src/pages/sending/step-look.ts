// The icon and colour of each step and each end, the same in the picture and in the list.
import {
  Ban,
  Check,
  CirclePause,
  Clock,
  Flag,
  Hourglass,
  type LucideIcon,
  PackageOpen,
  Radio,
  Trash2,
  Undo2,
  X,
} from 'lucide-react'
import type { Tone } from '../../parts/badge.tsx'
import { life } from '../../texts/life.ts'
import type { Step } from './journey.ts'

export interface Look {
  icon: LucideIcon
  tone: Tone
  title: string
}

const kinds: Record<Exclude<Step['kind'], 'attempt'>, [LucideIcon, Tone]> = {
  queued: [PackageOpen, 'idle'],
  blocked: [Hourglass, 'wait'],
  withheld: [CirclePause, 'wait'],
  delayed: [Hourglass, 'wait'],
  returned: [Undo2, 'bad'],
  failed: [X, 'bad'],
  suppressed: [Ban, 'idle'],
  cancelled: [Trash2, 'idle'],
  complained: [Flag, 'bad'],
}
const outcomes: Record<NonNullable<Step['outcome']>, [LucideIcon, Tone]> = {
  delivered: [Check, 'good'],
  deferred: [Clock, 'wait'],
  bounced: [X, 'bad'],
  failed: [X, 'bad'],
  underway: [Radio, 'note'],
}

export function lookOf({ kind, outcome, number, response }: Step): Look {
  if (kind !== 'attempt' || outcome === null) {
    const [icon, tone] = kinds[kind === 'attempt' ? 'queued' : kind]
    return { icon, tone, title: life.step[kind === 'attempt' ? 'queued' : kind] }
  }
  const [icon, tone] = outcomes[outcome]
  const end = outcome === 'deferred' && response === null ? life.step.unknown : life.step[outcome]
  return { icon, tone, title: `${life.step.attempt(number)}: ${end.toLowerCase()}` }
}

/** The background and the text colour on it. */
export const fills: Record<Tone, string> = {
  good: 'bg-good text-surface',
  wait: 'bg-wait text-surface',
  bad: 'bg-bad text-surface',
  note: 'bg-note text-surface',
  idle: 'bg-edge text-surface',
  accent: 'bg-accent text-on-accent',
}
export const softs: Record<Tone, string> = {
  good: 'bg-good-soft text-good',
  wait: 'bg-wait-soft text-wait',
  bad: 'bg-bad-soft text-bad',
  note: 'bg-note-soft text-note',
  idle: 'bg-idle-soft text-idle',
  accent: 'bg-accent-soft text-accent',
}
