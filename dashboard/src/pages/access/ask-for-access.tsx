// A request for access: the name of an organization, which the operator approves.
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { ButtonLink } from '../../parts/form/button.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { useSession, useTakeSession } from '../../shell/session.ts'
import { access } from '../../texts/access.ts'
import { AccessForm } from './access-form.tsx'
import { AccessFrame } from './access-frame.tsx'

const texts = access.pending

export function AskForAccess({ footer }: { footer: ReactNode }) {
  const { organization } = useSession()
  const [name, setName] = useState('')
  const navigate = useNavigate()
  const takeSession = useTakeSession()
  const sending = useMutation({
    mutationFn: () => read(api.POST('/v1/organizations', { body: { name } })),
    onSuccess: async (session) => {
      takeSession(session)
      await navigate({ to: session.organization?.status === 'active' ? '/' : '/pending' })
    },
  })
  const back = organization && (
    <ButtonLink to="/" variant="quiet">
      {texts.back}
    </ButtonLink>
  )
  return (
    <AccessFrame title={texts.askTitle} lead={texts.askLead} footer={footer}>
      <AccessForm submit={texts.ask} sending={sending} below={back}>
        <TextField
          label={access.organizationName}
          name="organization"
          autoComplete="organization"
          required
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </AccessForm>
    </AccessFrame>
  )
}
