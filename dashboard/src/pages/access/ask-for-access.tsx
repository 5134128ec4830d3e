// Asking for access: the name of an organization, which the operator approves.
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { Button, ButtonLink } from '../../parts/button.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { TextField } from '../../parts/field.tsx'
import { useSession, useTakeSession } from '../../shell/session.ts'
import { access } from '../../texts/access.ts'
import { AccessFrame } from './access-frame.tsx'

const texts = access.pending

export function AskForAccess({ footer }: { footer: ReactNode }) {
  const { organization } = useSession()
  const [name, setName] = useState('')
  const navigate = useNavigate()
  const takeSession = useTakeSession()
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => read(api.POST('/v1/organizations', { body: { name } })),
    onSuccess: async (session) => {
      takeSession(session)
      await navigate({ to: session.organization?.status === 'active' ? '/' : '/pending' })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  return (
    <AccessFrame title={texts.askTitle} lead={texts.askLead} footer={footer}>
      <form onSubmit={submit} className="grid gap-4">
        <TextField
          label={access.organizationName}
          name="organization"
          autoComplete="organization"
          required
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <ErrorNote error={error} />
        <Button type="submit" variant="primary" busy={isPending}>
          {texts.ask}
        </Button>
        {organization && (
          <ButtonLink to="/" variant="quiet">
            {texts.back}
          </ButtonLink>
        )}
      </form>
    </AccessFrame>
  )
}
