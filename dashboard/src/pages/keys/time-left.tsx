// How long a key is still good: in days as long as there are some, for weeks say too little.
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
