// The doctor's findings, shown as they arrive, each with advice.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Check, Minus, Stethoscope, TriangleAlert, X } from 'lucide-react'
import { read } from '../../api/client.ts'
import { Card } from '../../parts/card.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import { type Answer, api } from '../client.ts'
import { useHealth } from '../queries.ts'

type Health = Answer<'/health'>

const { nodes: words } = desk
type Line = Health['checks'][number]

export function HealthCard() {
  const query = useHealth()
  const queries = useQueryClient()
  const examine = useMutation({
    mutationFn: () => read(api.POST('/health')),
    onSuccess: (health) => queries.setQueryData(['health'], health),
  })
  const state = query.data?.state
  const press = (
    <Button
      size="small"
      icon={Stethoscope}
      busy={examine.isPending || state === 'running'}
      onClick={() => examine.mutate()}
    >
      {state === 'running' ? words.examining : state === 'none' ? words.examine : words.examineAgain}
    </Button>
  )
  return (
    <Card title={words.health} lead={words.healthLead} actions={query.data && press}>
      <ErrorNote error={examine.error} />
      <Loaded query={query}>{(health) => <Lines health={health} />}</Loaded>
    </Card>
  )
}

function Lines({ health: { state, checks, fault, endedAt } }: { health: Health }) {
  if (state === 'none') return <p className="text-muted">{words.neverExamined}</p>
  const count = (status: Line['status']) => checks.filter((line) => line.status === status).length
  return (
    <div className="grid gap-3" aria-live="polite" aria-busy={state === 'running'}>
      {fault && <ErrorNote error={new Error(fault)} />}
      {state === 'done' && endedAt && (
        <p>
          <span className="font-medium">{words.summary(count('failed'), count('warning'))}</span>{' '}
          <span className="text-sm text-faint">
            <Time value={endedAt} />
          </span>
        </p>
      )}
      <ul className="divide-y rounded-md border">
        {checks.map((line) => (
          <CheckLine key={`${line.name} ${line.detail}`} line={line} />
        ))}
      </ul>
    </div>
  )
}

const signs = {
  ok: { icon: Check, look: 'text-good' },
  warning: { icon: TriangleAlert, look: 'text-wait' },
  failed: { icon: X, look: 'text-bad' },
  skipped: { icon: Minus, look: 'text-faint' },
} as const

function CheckLine({ line: { name, status, detail, mend } }: { line: Line }) {
  const { icon: Icon, look } = signs[status]
  return (
    <li className="grid grid-cols-[20px_minmax(0,1fr)] gap-x-2.5 px-3.5 py-2.5 sm:grid-cols-[20px_150px_minmax(0,1fr)]">
      <Icon size={16} className={`mt-[3px] ${look}`} aria-label={words.statuses[status]} />
      <span className="font-medium">{name}</span>
      <span className="col-start-2 break-words text-muted sm:col-start-3">
        {detail}
        {mend && (
          <span className="mt-0.5 block text-ink">
            <span className="font-medium">{words.mend}:</span> {mend}
          </span>
        )}
      </span>
    </li>
  )
}
