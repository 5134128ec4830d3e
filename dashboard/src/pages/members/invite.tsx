// The dialog that invites a person by mail into a role.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { TextField } from '../../parts/form/field.tsx'
import { focusFault } from '../../parts/form/focus-fault.ts'
import { FormDialog } from '../../parts/form/form-dialog.tsx'
import { toast } from '../../parts/toasts.ts'
import { members as words } from '../../texts/members.ts'
import { RolePicker } from './change-role.tsx'
import type { Role } from './queries.ts'

export function Invite({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const [isTried, setIsTried] = useState(false)
  const invite = useInvite(onClose)
  const send = (form: HTMLFormElement) => {
    setIsTried(true)
    focusFault(form)
    if (email.trim()) invite.mutate({ email: email.trim(), role })
  }
  return (
    <FormDialog
      onClose={onClose}
      title={words.inviteTitle}
      lead={words.inviteLead}
      submit={words.inviteDeed}
      sending={invite}
      onSubmit={send}
    >
      <div className="grid gap-5">
        <TextField
          label={words.email}
          type="email"
          value={email}
          autoComplete="off"
          error={isTried && !email.trim() ? words.emailMissing : null}
          onChange={(event) => setEmail(event.target.value)}
        />
        <RolePicker label={words.role} value={role} onChange={setRole} />
      </div>
    </FormDialog>
  )
}

function useInvite(onDone: () => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: (body: { email: string; role: Role }) => read(api.POST('/v1/invitations', { body })),
    onSuccess: async ({ email }) => {
      toast(words.invited(email))
      onDone()
      await queries.invalidateQueries({ queryKey: ['members'] })
    },
  })
}
