// The remaining lifetime of a key, in days if it is long, because weeks are too coarse.
import { exactTime, Time } from '../../parts/time.tsx'
import { keys } from '../../texts/keys.ts'

const dayMs = 86_400_000

export function TimeLeft({ until }: { until: string }) {
  const days = Math.round((Date.parse(until) - Date.now()) / dayMs)
  if (days < 2) return <Time value={until} />
  return (
    <time dateTime={until} title={exactTime(until)}>
      {keys.inDays(days)}
    </time>
  )
}
