// The deletion of an organization: a preview of the loss, the typed name, and the progress.
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Check, LoaderCircle } from 'lucide-react'
import { useEffect } from 'react'
import { read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { toast } from '../../parts/toasts.ts'
import { desk } from '../../texts/desk.ts'
import { parts } from '../../texts/parts.ts'
import { type Answer, api, type Organization } from '../client.ts'
import { useDeed } from '../deed.ts'
import { useDeletion } from '../queries.ts'

type Deletion = Answer<'/organizations/{organizationId}/deletion'>

const { organization: words } = desk

interface DeleteProps {
  organization: Organization
  onClose: () => void
}

export function Delete({ organization, onClose }: DeleteProps) {
  const { id, name } = organization
  const given = { params: { path: { organizationId: id } }, body: { confirm: name } }
  const query = useDeletion(id)
  const begin = useDeed(
    () => read(api.POST('/organizations/{organizationId}/deletion', given)),
    () => words.removing,
  )
  const { work, isGone, holdings } = query.data ?? {}
  useLeaveWhenGone(isGone === true)
  if (work) return <Progressing work={work} name={name} onAgain={() => begin.mutate()} onClose={onClose} />
  return (
    <Confirm
      onClose={onClose}
      title={words.removeTitle(name)}
      deed={words.remove}
      word={name}
      change={() => begin.mutateAsync()}
      error={query.error}
    >
      <div className="grid gap-3">
        <p>{words.removeWhat}</p>
        {holdings && <Holdings holdings={holdings} />}
      </div>
    </Confirm>
  )
}

function Holdings({ holdings }: Pick<Deletion, 'holdings'>) {
  const names = (Object.keys(words.holdings) as (keyof typeof words.holdings)[]).filter(
    (name) => holdings[name] > 0,
  )
  if (names.length === 0) return <p>{words.removeHasNothing}</p>
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-1 rounded-md border px-3.5 py-3">
      {names.map((name) => (
        <div key={name} className="flex justify-between gap-3">
          <dt className="text-sm">{words.holdings[name]}</dt>
          <dd className="numbers font-medium text-ink">{holdings[name].toLocaleString('en')}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Leaves the page when the organization is gone. */
function useLeaveWhenGone(isGone: boolean): void {
  const navigate = useNavigate()
  const queries = useQueryClient()
  useEffect(() => {
    if (!isGone) return
    toast(words.removed)
    void navigate({ to: '/organizations' })
    void queries.invalidateQueries({ queryKey: ['organizations'] })
  }, [isGone, navigate, queries])
}

interface ProgressingProps {
  work: NonNullable<Deletion['work']>
  name: string
  onAgain: () => void
  onClose: () => void
}

function Progressing({ work: { state, steps, fault }, name, onAgain, onClose }: ProgressingProps) {
  const isRunning = state === 'running'
  const footer = isRunning ? (
    <Button onClick={onClose}>{parts.close}</Button>
  ) : (
    <Button variant="danger" onClick={onAgain}>
      {words.removeAgain}
    </Button>
  )
  return (
    <Dialog open onClose={onClose} title={words.removeTitle(name)} lead={words.removeGoesOn} footer={footer}>
      <ol className="grid gap-2" aria-live="polite">
        {steps.map((step, index) => (
          <li key={step} className="flex items-center gap-2.5">
            {isRunning && index === steps.length - 1 ? (
              <LoaderCircle size={15} className="animate-spin text-accent" aria-hidden />
            ) : (
              <Check size={15} className="text-good" aria-hidden />
            )}
            {step}
          </li>
        ))}
      </ol>
      {state === 'failed' && (
        <div className="mt-4 grid gap-2">
          <ErrorNote error={new Error(fault ?? words.removeFailed)} />
          <p className="text-sm text-muted">{words.removeFailed}</p>
        </div>
      )}
    </Dialog>
  )
}
