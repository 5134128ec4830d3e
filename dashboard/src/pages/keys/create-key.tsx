// A new key: its form, then its secret (shown once) with a first call that works unchanged.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { focusFault } from '../../parts/form/focus-fault.ts'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { SecretDialog } from '../../parts/form/secret-dialog.tsx'
import { keys } from '../../texts/keys.ts'
import { firstCall } from './first-call.ts'
import { bodyOf, emptyDraft, faultsOf } from './key-draft.ts'
import { KeyForm } from './key-form.tsx'
import { inboxesQuery, type Key } from './queries.ts'

export function CreateKey({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const create = useMutation({
    mutationFn: (body: Schemas['NewKey']) => read(api.POST('/v1/keys', { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['keys', 'list'] }),
  })
  if (create.data) return <NewSecret made={create.data} onClose={onClose} />
  return <Filling onClose={onClose} onSend={create.mutate} isBusy={create.isPending} error={create.error} />
}

/** The first call uses an inbox that the key reaches. Without such an inbox it uses a call that needs none. */
export function useFirstCall(key: Key, secret: string): string {
  const { data: found } = useQuery(inboxesQuery(''))
  const reached = key.inboxIds ? found?.find(({ id }) => key.inboxIds?.includes(id)) : found?.[0]
  const bound = key.inboxIds?.[0]
  const { data: named } = useQuery({
    queryKey: ['keys', 'inbox', bound],
    enabled: bound !== undefined && reached === undefined,
    queryFn: () => read(api.GET('/v1/inboxes/{inboxId}', { params: { path: { inboxId: bound! } } })),
  })
  return firstCall({ origin: location.origin, secret, key, inbox: reached ?? named ?? null })
}

function NewSecret({
  made: { key, secret },
  onClose,
}: {
  made: Schemas['KeyWithSecret']
  onClose: () => void
}) {
  const call = useFirstCall(key, secret)
  return (
    <SecretDialog
      title={keys.created}
      secret={secret}
      what={keys.secret}
      firstCall={call}
      done={keys.done}
      onDone={onClose}
    >
      {key.allowedIps && <p className="text-sm text-muted">{keys.onlyFrom(key.allowedIps.join(', '))}</p>}
    </SecretDialog>
  )
}

interface FillingProps {
  onClose: () => void
  onSend: (body: Schemas['NewKey']) => void
  isBusy: boolean
  error: unknown
}

function Filling({ onClose, onSend, isBusy, error }: FillingProps) {
  const [draft, setDraft] = useState(emptyDraft)
  const [isTried, setIsTried] = useState(false)
  const faults = faultsOf(draft)
  const send = (form: HTMLFormElement) => {
    setIsTried(true)
    focusFault(form)
    if (Object.keys(faults).length === 0) onSend(bodyOf(draft))
  }
  return (
    <FormDialog
      onClose={onClose}
      title={keys.createTitle}
      width="large"
      submit={keys.createDeed}
      sending={{ isPending: isBusy, error }}
      onSubmit={send}
    >
      <KeyForm draft={draft} onChange={setDraft} faults={isTried ? faults : {}} />
    </FormDialog>
  )
}
