// A state as one coloured word, readable without the colour.
import type { ReactNode } from 'react'
import { states } from '../texts/states.ts'
import { classes } from './classes.ts'

export type Tone = 'good' | 'wait' | 'bad' | 'note' | 'idle' | 'accent'

const styles: Record<Tone, string> = {
  good: 'bg-good-soft text-good',
  wait: 'bg-wait-soft text-wait',
  bad: 'bg-bad-soft text-bad',
  note: 'bg-note-soft text-note',
  idle: 'bg-idle-soft text-idle',
  accent: 'bg-accent-soft text-accent',
}

export function Badge({
  tone = 'idle',
  children,
  title,
}: {
  tone?: Tone
  children: ReactNode
  title?: string
}) {
  return (
    <span
      title={title}
      className={classes(
        'inline-flex h-5.5 items-center gap-1.5 rounded-full px-2 text-xs font-medium whitespace-nowrap',
        styles[tone],
      )}
    >
      <span aria-hidden className="size-1.5 rounded-full bg-current" />
      {children}
    </span>
  )
}

const tones: Record<Tone, readonly string[]> = {
  good: [
    'delivered',
    'verified',
    'valid',
    'succeeded',
    'active',
    'clean',
    'pass',
    'deliverable',
    'normal',
    'received',
  ],
  wait: [
    'deferred',
    'risky',
    'partially_delivered',
    'limited',
    'softfail',
    'missing',
    'unscanned',
    'temperror',
  ],
  bad: [
    ...[
      'bounced',
      'failed',
      'complained',
      'mismatch',
      'error',
      'infected',
      'fail',
      'undeliverable',
      'suspended',
    ],
    ...['paused', 'permerror', 'revoked', 'expired'],
  ],
  note: ['submitted', 'queued', 'attempted', 'accepted'],
  accent: ['owner'],
  idle: [],
}

/** Returns the colour of a state, the same on all pages. */
export function toneOf(state: string): Tone {
  return (Object.keys(tones) as Tone[]).find((tone) => tones[tone].includes(state)) ?? 'idle'
}

/** Shows a state of the API as a coloured word. */
export function StateBadge({ state }: { state: string }) {
  const words: Record<string, string> = states
  return <Badge tone={toneOf(state)}>{words[state] ?? state.replaceAll('_', ' ')}</Badge>
}
