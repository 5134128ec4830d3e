// The dialog that changes an endpoint: its address, its description, and its events.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { toast } from '../../parts/toasts.ts'
import { webhooks } from '../../texts/webhooks.ts'
import { type Webhook, webhookQuery } from './queries.ts'
import { bodyOf, draftOf, faultOf, refusalOfUrl, WebhookForm } from './webhook-form.tsx'

export function ChangeWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const [draft, setDraft] = useState(() => draftOf(webhook))
  const change = useChange(webhook.id, onClose)
  const missing = faultOf(draft)
  const urlFault = missing.url ?? refusalOfUrl(change.error) ?? undefined
  const send = () => Object.keys(missing).length === 0 && change.mutate(bodyOf(draft))
  return (
    <FormDialog
      onClose={onClose}
      title={webhooks.changeTitle}
      submit={webhooks.save}
      sending={{ isPending: change.isPending, error: urlFault ? null : change.error }}
      onSubmit={send}
    >
      <WebhookForm draft={draft} onChange={setDraft} faults={{ ...missing, url: urlFault }} />
    </FormDialog>
  )
}

function useChange(webhookId: string, onDone: () => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (body: Schemas['WebhookChange']) =>
      read(api.PATCH('/v1/webhooks/{webhookId}', { params: { path: { webhookId } }, body })),
    onSuccess: (webhook) => {
      toast(webhooks.saved)
      queries.setQueryData(webhookQuery(webhookId).queryKey, webhook)
      void queries.invalidateQueries({ queryKey: ['webhooks', 'list'] })
      onDone()
    },
  })
}
