// Which recipients of many are shown: by where they stand, with how many there are.
import { Segments } from '../../parts/form/segments.tsx'
import { life } from '../../texts/life.ts'
import { states } from '../../texts/states.ts'
import { type Journey, recipientState } from './journey.ts'

interface RecipientFilterProps {
  journeys: readonly Journey[]
  /** '': all. */
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
