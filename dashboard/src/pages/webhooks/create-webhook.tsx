// A new endpoint: its form, then its secret (shown once), with programs that verify calls with it.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { CodeTabs } from '../../parts/code-tabs.tsx'
import { focusFault } from '../../parts/form/focus-fault.ts'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { SecretDialog } from '../../parts/form/secret-dialog.tsx'
import { webhooks } from '../../texts/webhooks.ts'
import { verification } from './verification.ts'
import { bodyOf, emptyDraft, faultOf, refusalOfUrl, WebhookForm } from './webhook-form.tsx'

export function CreateWebhook({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const create = useMutation({
    mutationFn: (body: Schemas['NewWebhook']) => read(api.POST('/v1/webhooks', { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['webhooks', 'list'] }),
  })
  if (!create.data)
    return <Filling onClose={onClose} onSend={create.mutate} isBusy={create.isPending} error={create.error} />
  const { id, secret } = create.data
  return (
    <SecretDialog
      title={webhooks.secretTitle}
      secret={secret}
      what={webhooks.secretWhat}
      done={webhooks.openIt}
      onDone={() => void navigate({ to: `/webhooks/${id}` })}
    >
      <HowToVerify />
    </SecretDialog>
  )
}

export function HowToVerify() {
  return (
    <div>
      <p className="text-sm font-medium">{webhooks.verify}</p>
      <p className="mb-2.5 text-sm text-muted">{webhooks.verifyWhy}</p>
      <CodeTabs label={webhooks.verify} codes={verification} />
    </div>
  )
}

interface FillingProps {
  onClose: () => void
  onSend: (body: Schemas['NewWebhook']) => void
  isBusy: boolean
  error: unknown
}

function Filling({ onClose, onSend, isBusy, error }: FillingProps) {
  const [draft, setDraft] = useState(emptyDraft)
  const [isTried, setIsTried] = useState(false)
  const missing = faultOf(draft)
  const faults = isTried ? missing : {}
  const send = (form: HTMLFormElement) => {
    setIsTried(true)
    focusFault(form)
    if (Object.keys(missing).length === 0) onSend(bodyOf(draft))
  }
  const urlFault = faults.url ?? refusalOfUrl(error) ?? undefined
  return (
    <FormDialog
      onClose={onClose}
      title={webhooks.create}
      lead={webhooks.createLead}
      submit={webhooks.createDeed}
      sending={{ isPending: isBusy, error: urlFault ? null : error }}
      onSubmit={send}
    >
      <WebhookForm draft={draft} onChange={setDraft} faults={{ ...faults, url: urlFault }} />
    </FormDialog>
  )
}
