// The DKIM keys: the phase of a key change, and the button that starts one.
import { useQueryClient } from '@tanstack/react-query'
import { Check, KeyRound } from 'lucide-react'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { Card } from '../../parts/card.tsx'
import { classes } from '../../parts/classes.ts'
import { Button } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { toast } from '../../parts/toasts.ts'
import { useMay } from '../../shell/session.ts'
import { domains } from '../../texts/domains.ts'
import { type Domain, domainQuery } from './domain-queries.ts'

/** `steady`: no change. `first`: no key signs yet. `publish`: new keys wait. `retiring`: the old keys still exist. */
type Phase = 'steady' | 'first' | 'publish' | 'retiring'

const words: Record<Phase, string> = {
  steady: domains.dkimSteady,
  first: domains.dkimFirst,
  publish: domains.dkimWaiting,
  retiring: domains.dkimRetired,
}
/** The number of completed steps in each phase. */
const done: Record<Phase, number> = { steady: 0, first: 0, publish: 1, retiring: 3 }

function phaseOf({ records }: Domain): Phase {
  const keys = records.filter(({ purpose }) => purpose === 'dkim')
  const waits = keys.some(({ required, status }) => required && status !== 'valid')
  if (waits) return keys.filter(({ required }) => required).length > 2 ? 'publish' : 'first'
  return keys.some(({ required }) => !required) ? 'retiring' : 'steady'
}

export function DkimCard({ domain }: { domain: Domain }) {
  const [isAsking, setIsAsking] = useState(false)
  const mayChange = useMay('change')
  const phase = phaseOf(domain)
  return (
    <Card
      title={domains.dkim}
      lead={domains.dkimWhat}
      actions={
        mayChange &&
        (phase === 'steady' || phase === 'retiring') && (
          <Button size="small" icon={KeyRound} onClick={() => setIsAsking(true)}>
            {domains.dkimRotate}
          </Button>
        )
      }
    >
      <p>{words[phase]}</p>
      {done[phase] > 0 && <Steps done={done[phase]} />}
      <RotateDialog open={isAsking} onClose={() => setIsAsking(false)} domainId={domain.id} />
    </Card>
  )
}

function Steps({ done }: { done: number }) {
  return (
    <ol className="mt-4 grid gap-3 sm:grid-cols-4">
      {domains.dkimSteps.map((step, index) => (
        <li
          key={step}
          aria-current={index === done ? 'step' : undefined}
          className={classes(
            'flex items-start gap-2 border-t-2 pt-2 text-sm',
            index < done
              ? 'border-good'
              : index === done
                ? 'border-accent font-medium'
                : 'border-line text-faint',
          )}
        >
          {index < done && <Check size={15} aria-hidden className="mt-[3px] shrink-0 text-good" />}
          {step}
        </li>
      ))}
    </ol>
  )
}

function RotateDialog({ open, onClose, domainId }: { open: boolean; onClose: () => void; domainId: string }) {
  const queries = useQueryClient()
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={domains.dkimRotate}
      deed={domains.dkimRotate}
      change={() => read(api.POST('/v1/domains/{domainId}/rotate-dkim', { params: { path: { domainId } } }))}
      onDone={(domain) => {
        queries.setQueryData(domainQuery(domainId).queryKey, domain)
        toast(domains.dkimRotated)
        onClose()
      }}
    >
      {domains.dkimRotateWhat}
    </Confirm>
  )
}
