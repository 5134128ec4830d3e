// Which recipients of many are shown: by where they stand, with how many there are.
import { classes } from '../../parts/classes.ts'
import { life } from '../../texts/life.ts'
import { states } from '../../texts/states.ts'
import type { Journey } from './journey.ts'

interface RecipientFilterProps {
  journeys: readonly Journey[]
  /** Null: all. */
  status: string | null
  onChange: (status: string | null) => void
}

export function RecipientFilter({ journeys, status, onChange }: RecipientFilterProps) {
  const words: Record<string, string> = states
  const counts = [...Map.groupBy(journeys, (journey) => journey.status)].map(
    ([one, { length }]) => [one, length] as const,
  )
  return (
    <fieldset className="flex flex-wrap gap-1">
      <legend className="sr-only">{life.recipients}</legend>
      {[[null, journeys.length] as const, ...counts].map(([one, count]) => (
        <button
          key={one ?? 'all'}
          type="button"
          aria-pressed={one === status}
          onClick={() => onChange(one)}
          className={classes(
            'numbers h-7 rounded-md px-2.5 text-sm',
            one === status ? 'bg-idle-soft font-medium text-ink' : 'text-muted hover:text-ink',
          )}
        >
          {one === null ? life.filterAll : (words[one] ?? one)} {count}
        </button>
      ))}
    </fieldset>
  )
}
