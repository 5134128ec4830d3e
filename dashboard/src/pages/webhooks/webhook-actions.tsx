// The actions on an endpoint: test, change, disable, replace the secret, delete.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { CirclePause, CirclePlay, Ellipsis, KeyRound, Pencil, Send, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { wordsOf } from '../../parts/error-note.tsx'
import { Button, IconButton } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { Menu } from '../../parts/form/menu.tsx'
import { toast } from '../../parts/toasts.ts'
import { useMay } from '../../shell/session.ts'
import { webhooks } from '../../texts/webhooks.ts'
import { ChangeWebhook } from './change-webhook.tsx'
import { type Webhook, webhookQuery } from './queries.ts'
import { RotateSecret } from './rotate-secret.tsx'

type Open = 'change' | 'rotate' | 'delete' | null

export function WebhookActions({ webhook }: { webhook: Webhook }) {
  const [open, setOpen] = useState<Open>(null)
  const close = () => setOpen(null)
  if (!useMay('change')) return null
  return (
    <>
      <TestButton webhook={webhook} />
      <MoreActions webhook={webhook} onOpen={setOpen} />
      {open === 'change' && <ChangeWebhook webhook={webhook} onClose={close} />}
      {open === 'rotate' && <RotateSecret webhookId={webhook.id} onClose={close} />}
      {open === 'delete' && <DeleteWebhook webhook={webhook} onClose={close} />}
    </>
  )
}

function TestButton({ webhook: { id, status } }: { webhook: Webhook }) {
  const queries = useQueryClient()
  const test = useMutation({
    mutationFn: () =>
      read(api.POST('/v1/webhooks/{webhookId}/test', { params: { path: { webhookId: id } } })),
    onSuccess: async () => {
      toast(webhooks.tested)
      await queries.invalidateQueries({ queryKey: ['webhooks', 'deliveries', id] })
    },
    onError: (error) => toast(wordsOf(error).title, 'bad'),
  })
  const refusal = status === 'disabled' ? webhooks.testDisabled : undefined
  return (
    <Button icon={Send} refusal={refusal} busy={test.isPending} onClick={() => test.mutate()}>
      {webhooks.test}
    </Button>
  )
}

function MoreActions({ webhook, onOpen }: { webhook: Webhook; onOpen: (open: Open) => void }) {
  const switchOver = useSwitch(webhook)
  const isOn = webhook.status === 'active'
  return (
    <Menu
      trigger={<IconButton icon={Ellipsis} label={webhooks.more} />}
      groups={[
        [
          { label: webhooks.change, icon: Pencil, onSelect: () => onOpen('change') },
          { label: webhooks.rotate, icon: KeyRound, onSelect: () => onOpen('rotate') },
          isOn
            ? { label: webhooks.disable, icon: CirclePause, onSelect: () => switchOver('disabled') }
            : { label: webhooks.enable, icon: CirclePlay, onSelect: () => switchOver('active') },
        ],
        [{ label: webhooks.delete, icon: Trash2, danger: true, onSelect: () => onOpen('delete') }],
      ]}
    />
  )
}

/** Returns a function that enables or disables an endpoint. */
function useSwitch({ id }: Webhook): (status: Webhook['status']) => void {
  const queries = useQueryClient()
  const { mutate } = useMutation({
    mutationFn: (status: Webhook['status']) =>
      read(api.PATCH('/v1/webhooks/{webhookId}', { params: { path: { webhookId: id } }, body: { status } })),
    onSuccess: async (webhook) => {
      toast(webhook.status === 'active' ? webhooks.enabled : webhooks.disabled)
      queries.setQueryData(webhookQuery(id).queryKey, webhook)
      await queries.invalidateQueries({ queryKey: ['webhooks', 'list'] })
      await queries.invalidateQueries({ queryKey: ['webhooks', 'deliveries', id] })
    },
    onError: (error) => toast(wordsOf(error).title, 'bad'),
  })
  return mutate
}

function DeleteWebhook({ webhook: { id, url }, onClose }: { webhook: Webhook; onClose: () => void }) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  return (
    <Confirm
      onClose={onClose}
      title={webhooks.deleteTitle}
      deed={webhooks.deleteDeed}
      word={URL.parse(url)?.host ?? url}
      change={() => read(api.DELETE('/v1/webhooks/{webhookId}', { params: { path: { webhookId: id } } }))}
      onDone={async () => {
        toast(webhooks.deleted)
        // The cached list would ask for the last call of the deleted endpoint.
        queries.removeQueries({ queryKey: ['webhooks', 'list'] })
        await navigate({ to: '/webhooks' })
      }}
    >
      {webhooks.deleteWhat}
    </Confirm>
  )
}
