// A new signing secret, in steps: what will happen, then the secret, with a day in which the old one still verifies.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
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
  const footer = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button variant="primary" busy={rotate.isPending} onClick={() => rotate.mutate()}>
        {webhooks.rotateDeed}
      </Button>
    </>
  )
  return (
    <Dialog open onClose={onClose} title={webhooks.rotateTitle} footer={footer}>
      <ol className="mb-4 grid list-decimal gap-2 pl-5 text-muted marker:text-faint">
        {webhooks.rotateSteps.map((step) => (
          <li key={step} className="pl-1 text-pretty">
            {step}
          </li>
        ))}
      </ol>
      <ErrorNote error={rotate.error} />
    </Dialog>
  )
}
