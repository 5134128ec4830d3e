// A dialog that gives an inbox another name.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useId, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { toast } from '../../parts/toasts.ts'
import { mail } from '../../texts/mail.ts'
import { parts } from '../../texts/parts.ts'
import type { Inbox } from './mail-queries.ts'

export function RenameInbox({ inbox, onClose }: { inbox: Inbox; onClose: () => void }) {
  const form = useId()
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
  const submit = (event: FormEvent) => {
    event.preventDefault()
    rename.mutate()
  }
  const isNew = displayName.trim() !== '' && displayName.trim() !== inbox.displayName
  return (
    <Dialog
      open
      onClose={onClose}
      title={mail.renameInbox}
      footer={
        <>
          <Button onClick={onClose}>{parts.cancel}</Button>
          <Button variant="primary" type="submit" form={form} busy={rename.isPending} disabled={!isNew}>
            {mail.renameInbox}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="grid gap-4">
        <TextField
          label={mail.displayName}
          hint={mail.renameInboxHint}
          value={displayName}
          required
          maxLength={200}
          autoComplete="off"
          onChange={(event) => setDisplayName(event.target.value)}
        />
        <ErrorNote error={rename.error} />
      </form>
    </Dialog>
  )
}
