// A filter of many recipients by state, with the count of each state.
import { Segments } from '../../parts/form/segments.tsx'
import { life } from '../../texts/life.ts'
import { states } from '../../texts/states.ts'
import { type Journey, recipientState } from './journey.ts'

interface RecipientFilterProps {
  journeys: readonly Journey[]
  /** Empty: all states. */
  state: string
  onChange: (state: string) => void
}

export function RecipientFilter({ journeys, state, onChange }: RecipientFilterProps) {
  const words: Record<string, string> = states
  const counts = [...Map.groupBy(journeys, recipientState)].map(([value, { length }]) => ({
    value,
    label: `${words[value] ?? value} ${length}`,
  }))
  const all = { value: '', label: `${life.filterAll} ${journeys.length}` }
  return <Segments label={life.recipients} value={state} options={[all, ...counts]} onChange={onChange} />
}
