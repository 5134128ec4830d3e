// A moment as relative time, with the exact time on hover.
import { useSyncExternalStore } from 'react'
import { parts } from '../texts/parts.ts'

const steps: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['week', 604_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const exact = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' })
const refreshMs = 30_000

/** One clock shared by all moments of a page. */
let nowMs = Date.now()
const watchers = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function watch(changed: () => void): () => void {
  watchers.add(changed)
  timer ??= setInterval(() => {
    nowMs = Date.now()
    for (const one of watchers) one()
  }, refreshMs)
  return () => {
    watchers.delete(changed)
    if (watchers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** `3 min. ago`, `in 2 hr.`, `just now`. */
export function relativeTime(atMs: number, fromMs: number): string {
  const seconds = (atMs - fromMs) / 1000
  const [unit, size] = steps.find(([, one]) => Math.abs(seconds) >= one) ?? []
  return unit && size ? relative.format(Math.trunc(seconds / size), unit) : parts.justNow
}

export function exactTime(value: string): string {
  return exact.format(new Date(value))
}

export function Time({ value, className }: { value: string; className?: string }) {
  useSyncExternalStore(watch, () => nowMs)
  return (
    <time dateTime={value} title={exactTime(value)} className={className}>
      {relativeTime(Date.parse(value), Date.now())}
    </time>
  )
}
