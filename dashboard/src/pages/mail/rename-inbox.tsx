// The dialog that renames an inbox.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { TextField } from '../../parts/form/field.tsx'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { toast } from '../../parts/toasts.ts'
import { mail } from '../../texts/mail.ts'
import type { Inbox } from './mail-queries.ts'

export function RenameInbox({ inbox, onClose }: { inbox: Inbox; onClose: () => void }) {
  const queries = useQueryClient()
  const [displayName, setDisplayName] = useState(inbox.displayName)
  const rename = useMutation({
    mutationFn: () =>
      read(
        api.PATCH('/v1/inboxes/{inboxId}', {
          params: { path: { inboxId: inbox.id } },
          body: { displayName: displayName.trim() },
        }),
      ),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ['inboxes'] })
      toast(mail.inboxRenamed)
      onClose()
    },
  })
  const isNew = displayName.trim() !== '' && displayName.trim() !== inbox.displayName
  return (
    <FormDialog
      onClose={onClose}
      title={mail.renameInbox}
      submit={mail.renameInbox}
      sending={rename}
      disabled={!isNew}
      onSubmit={() => rename.mutate()}
    >
      <TextField
        label={mail.displayName}
        hint={mail.renameInboxHint}
        value={displayName}
        required
        maxLength={200}
        autoComplete="off"
        onChange={(event) => setDisplayName(event.target.value)}
      />
    </FormDialog>
  )
}
