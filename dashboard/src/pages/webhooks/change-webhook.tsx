// An endpoint changed: its address, its description, and what it is told of.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { toast } from '../../parts/toasts.ts'
import { parts } from '../../texts/parts.ts'
import { webhooks } from '../../texts/webhooks.ts'
import { type Webhook, webhookQuery } from './queries.ts'
import { bodyOf, draftOf, faultOf, refusalOfUrl, WebhookForm } from './webhook-form.tsx'

export function ChangeWebhook({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const [draft, setDraft] = useState(() => draftOf(webhook))
  const change = useChange(webhook.id, onClose)
  const missing = faultOf(draft)
  const urlFault = missing.url ?? refusalOfUrl(change.error) ?? undefined
  const send = (event: FormEvent) => {
    event.preventDefault()
    if (Object.keys(missing).length === 0) change.mutate(bodyOf(draft))
  }
  const footer = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button variant="primary" type="submit" form="change-webhook" busy={change.isPending}>
        {webhooks.save}
      </Button>
    </>
  )
  return (
    <Dialog open onClose={onClose} title={webhooks.changeTitle} footer={footer}>
      <form id="change-webhook" noValidate onSubmit={send}>
        <WebhookForm draft={draft} onChange={setDraft} faults={{ ...missing, url: urlFault }}>
          {!urlFault && <ErrorNote error={change.error} />}
        </WebhookForm>
      </form>
    </Dialog>
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
