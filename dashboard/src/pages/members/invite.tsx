// Somebody invited by mail, into a role.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { focusFault } from '../../parts/form/focus-fault.ts'
import { toast } from '../../parts/toasts.ts'
import { members as words } from '../../texts/members.ts'
import { parts } from '../../texts/parts.ts'
import { RolePicker } from './change-role.tsx'
import type { Role } from './queries.ts'

export function Invite({ onClose }: { onClose: () => void }) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const [isTried, setIsTried] = useState(false)
  const invite = useInvite(onClose)
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    setIsTried(true)
    focusFault(event.currentTarget)
    if (email.trim()) invite.mutate({ email: email.trim(), role })
  }
  const footer = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button variant="primary" type="submit" form="invite" busy={invite.isPending}>
        {words.inviteDeed}
      </Button>
    </>
  )
  return (
    <Dialog open onClose={onClose} title={words.inviteTitle} lead={words.inviteLead} footer={footer}>
      <form id="invite" noValidate onSubmit={send} className="grid gap-5">
        <TextField
          label={words.email}
          type="email"
          value={email}
          autoComplete="off"
          error={isTried && !email.trim() ? words.emailMissing : null}
          onChange={(event) => setEmail(event.target.value)}
        />
        <RolePicker label={words.role} value={role} onChange={setRole} />
        <ErrorNote error={invite.error} />
      </form>
    </Dialog>
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
