// Rotates a key in four steps: create a copy, put it into the program, see it used, revoke the old key.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Check, LoaderCircle } from 'lucide-react'
import { type FormEvent, type ReactNode, useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { SecretOnce } from '../../parts/form/secret-once.tsx'
import { Steps } from '../../parts/steps.tsx'
import { Time } from '../../parts/time.tsx'
import { toast } from '../../parts/toasts.ts'
import { keys } from '../../texts/keys.ts'
import { parts } from '../../texts/parts.ts'
import { useFirstCall } from './create-key.tsx'
import { type Key, watchedKeysQuery } from './queries.ts'
import { useRevoke } from './revoke-key.tsx'
import { nextName, useNameHint } from './taken-name.ts'

type Made = Schemas['KeyWithSecret']

/** Until the secret is stored away, only the dialog's own buttons close it. */
export function RotateKey({ old, onClose }: { old: Key; onClose: () => void }) {
  const queries = useQueryClient()
  const [step, setStep] = useState(1)
  const rotate = useMutation({
    mutationFn: (name: string) =>
      read(api.POST('/v1/keys/{keyId}/rotate', { params: { path: { keyId: old.id } }, body: { name } })),
    onSuccess: async () => {
      setStep(2)
      await queries.invalidateQueries({ queryKey: ['keys', 'list'] })
    },
  })
  const made = rotate.data
  const shared = { at: step, old, onClose }
  if (!made || step === 1)
    return <Making {...shared} onMake={rotate.mutate} isBusy={rotate.isPending} error={rotate.error} />
  if (step === 2) return <Placing {...shared} made={made} onNext={() => setStep(3)} />
  if (step === 3) return <Watching {...shared} made={made} onNext={() => setStep(4)} />
  return <Ending {...shared} made={made} />
}

interface StepProps {
  at: number
  old: Key
  onClose: () => void
}

interface StepFrameProps {
  at: number
  onClose: () => void
  footer: ReactNode
  children: ReactNode
}

function StepFrame({ at, onClose, footer, children }: StepFrameProps) {
  return (
    <Dialog
      open
      onClose={onClose}
      title={keys.rotateTitle}
      lead={keys.rotateLead}
      width="large"
      footer={footer}
    >
      <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
        <Steps label={keys.rotateTitle} steps={keys.steps} at={at} stepOf={keys.step} />
        {children}
      </div>
    </Dialog>
  )
}

interface MakingProps extends StepProps {
  onMake: (name: string) => void
  isBusy: boolean
  error: unknown
}

function Making({ at, old, onClose, onMake, isBusy, error }: MakingProps) {
  const [name, setName] = useState(() => nextName(old.name))
  const hint = useNameHint(name, keys.newNameHint)
  const make = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim()) onMake(name.trim())
  }
  const footer = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button variant="primary" type="submit" form="rotate-key" busy={isBusy} disabled={!name.trim()}>
        {keys.makeNew}
      </Button>
    </>
  )
  return (
    <StepFrame at={at} onClose={onClose} footer={footer}>
      <form id="rotate-key" onSubmit={make} className="grid gap-4">
        <TextField
          label={keys.newName}
          hint={hint}
          value={name}
          maxLength={100}
          autoComplete="off"
          onChange={(event) => setName(event.target.value)}
        />
        <ErrorNote error={error} />
      </form>
    </StepFrame>
  )
}

function Placing({ at, made, onNext }: StepProps & { made: Made; onNext: () => void }) {
  const call = useFirstCall(made.key, made.secret)
  const [isLeaving, setIsLeaving] = useState(false)
  const footer = (
    <Button variant="primary" onClick={onNext}>
      {keys.next}
    </Button>
  )
  return (
    <StepFrame at={at} onClose={() => setIsLeaving(true)} footer={footer}>
      {isLeaving && (
        <p role="alert" className="rounded-md bg-wait-soft px-3 py-2.5 font-medium text-wait">
          {parts.copiedIt(keys.secret)}
        </p>
      )}
      <p className="text-muted">{keys.putIt}</p>
      <SecretOnce secret={made.secret} what={keys.secret} firstCall={call} />
    </StepFrame>
  )
}

function Watching({ at, made, onClose, onNext }: StepProps & { made: Made; onNext: () => void }) {
  const { data: newest } = useQuery(watchedKeysQuery)
  const usedAt = newest?.find(({ id }) => id === made.key.id)?.lastUsedAt ?? null
  const footer = (
    <>
      <Button onClick={onClose}>{keys.later}</Button>
      <Button variant={usedAt ? 'primary' : 'plain'} onClick={onNext}>
        {usedAt ? keys.toRevoke : keys.skip}
      </Button>
    </>
  )
  return (
    <StepFrame at={at} onClose={onClose} footer={footer}>
      <div role="status" className="flex items-center gap-3 rounded-md border px-4 py-3.5">
        {usedAt ? (
          <Check size={18} className="text-good" aria-hidden />
        ) : (
          <LoaderCircle size={18} className="animate-spin text-faint" aria-hidden />
        )}
        <p className="font-medium">{usedAt ? keys.usedNow : keys.waiting}</p>
        {usedAt && <Time value={usedAt} className="text-muted" />}
      </div>
      {!usedAt && <p className="text-sm text-faint">{keys.waitingHint}</p>}
    </StepFrame>
  )
}

function Ending({ at, old, made, onClose }: StepProps & { made: Made }) {
  const { data: newest } = useQuery(watchedKeysQuery)
  const lastOf = (key: Key) => (newest?.find(({ id }) => id === key.id) ?? key).lastUsedAt
  const [oldUsedAt, newUsedAt] = [lastOf(old), lastOf(made.key)]
  const revoke = useRevoke(old.id, () => {
    toast(keys.revokedToast)
    onClose()
  })
  // Both times have a precision of one minute.
  const isStillUsed = oldUsedAt !== null && newUsedAt !== null && oldUsedAt > newUsedAt
  const footer = (
    <>
      <Button onClick={onClose}>{keys.later}</Button>
      <Button variant="danger" busy={revoke.isPending} onClick={() => revoke.mutate()}>
        {keys.revokeOld}
      </Button>
    </>
  )
  return (
    <StepFrame at={at} onClose={onClose} footer={footer}>
      <p className="text-muted">
        {oldUsedAt ? (
          <>
            {keys.oldUsed} <Time value={oldUsedAt} />.
          </>
        ) : (
          keys.oldNever
        )}
      </p>
      {isStillUsed && <p className="rounded-md bg-wait-soft px-3 py-2.5 text-wait">{keys.oldStill}</p>}
      <p className="text-muted">{keys.revokeWhat}</p>
      <ErrorNote error={revoke.error} />
    </StepFrame>
  )
}
