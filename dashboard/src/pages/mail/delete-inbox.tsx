// The dialog that deletes an inbox, after its name is typed.
import { useQueryClient } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'
import { Confirm } from '../../parts/form/confirm.tsx'
import { toast } from '../../parts/toasts.ts'
import { mail } from '../../texts/mail.ts'
import type { Inbox } from './mail-queries.ts'
import { useGo } from './place.ts'

interface DeleteInboxProps {
  inbox: Inbox
  onClose: () => void
}

export function DeleteInbox({ inbox: { id, address, localPart }, onClose }: DeleteInboxProps) {
  const queries = useQueryClient()
  const go = useGo()
  return (
    <Confirm
      onClose={onClose}
      title={mail.deleteInbox}
      deed={mail.deleteInbox}
      word={localPart}
      change={() => read(api.DELETE('/v1/inboxes/{inboxId}', { params: { path: { inboxId: id } } }))}
      onDone={async () => {
        onClose()
        toast(mail.inboxDeleted(address))
        go({}, 'replace')
        await queries.resetQueries({ queryKey: ['inboxes', 'list'] })
        // Visible queries would be refetched, so only inactive ones are removed.
        for (const queryKey of [
          ['inboxes', 'one', id],
          ['threads', id],
        ])
          queries.removeQueries({ queryKey, type: 'inactive' })
      }}
    >
      {mail.deleteInboxWhat(address)}
    </Confirm>
  )
}
