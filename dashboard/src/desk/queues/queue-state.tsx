// The state of a queue as one coloured word.
import { Badge, type Tone } from '../../parts/badge.tsx'
import { desk } from '../../texts/desk.ts'
import type { Answer } from '../client.ts'

type Shown = Pick<Answer<'/queues'>['queues'][number], 'state' | 'failures'>

const tones: Record<Shown['state'], Tone> = { running: 'good', paused: 'bad', blocked: 'wait' }

export function QueueState({ queue: { state, failures } }: { queue: Shown }) {
  return (
    <Badge tone={tones[state]} title={failures > 0 ? desk.queues.failures(failures) : ''}>
      {desk.queues.states[state]}
    </Badge>
  )
}
