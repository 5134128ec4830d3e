// Replaces the signing secret: shows the consequences, then the new secret, while the old one still verifies for a day.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { SecretDialog } from '../../parts/form/secret-dialog.tsx'
import { parts } from '../../texts/parts.ts'
import { webhooks } from '../../texts/webhooks.ts'
import { HowToVerify } from './create-webhook.tsx'

export function RotateSecret({ webhookId, onClose }: { webhookId: string; onClose: () => void }) {
  const queries = useQueryClient()
  const rotate = useMutation({
    mutationFn: () =>
      read(api.POST('/v1/webhooks/{webhookId}/rotate-secret', { params: { path: { webhookId } } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['webhooks', 'one', webhookId] }),
  })
  if (rotate.data)
    return (
      <SecretDialog
        title={webhooks.rotatedTitle}
        secret={rotate.data.secret}
        what={webhooks.secretWhat}
        done={parts.haveIt}
        onDone={onClose}
      >
        <p className="text-muted">{webhooks.rotatedUntil}</p>
        <HowToVerify />
      </SecretDialog>
    )
  return (
    <FormDialog
      onClose={onClose}
      title={webhooks.rotateTitle}
      submit={webhooks.rotateDeed}
      sending={rotate}
      onSubmit={() => rotate.mutate()}
    >
      <ol className="grid list-decimal gap-2 pl-5 text-muted marker:text-faint">
        {webhooks.rotateSteps.map((step) => (
          <li key={step} className="pl-1 text-balance">
            {step}
          </li>
        ))}
      </ol>
    </FormDialog>
  )
}
