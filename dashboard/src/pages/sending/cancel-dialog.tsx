// Asks before the waiting recipients of a submission are cancelled.
import { useQueryClient } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'
import { Confirm } from '../../parts/form/confirm.tsx'
import { toast } from '../../parts/toasts.ts'
import { life } from '../../texts/life.ts'
import { lifeKey } from './life-query.ts'

interface CancelDialogProps {
  open: boolean
  onClose: () => void
  submissionId: string
  waiting: number
}

export function CancelDialog({ open, onClose, submissionId, waiting }: CancelDialogProps) {
  const queries = useQueryClient()
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={life.cancelTitle}
      deed={life.cancel}
      stay={life.keep}
      change={() =>
        read(api.POST('/v1/submissions/{submissionId}/cancel', { params: { path: { submissionId } } }))
      }
      onDone={async () => {
        toast(life.cancelled)
        onClose()
        await queries.invalidateQueries({ queryKey: lifeKey(submissionId) })
        await queries.invalidateQueries({ queryKey: ['submissions'] })
      }}
    >
      {life.cancelWhat(waiting)}
    </Confirm>
  )
}
