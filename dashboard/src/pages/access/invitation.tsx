// The landing page of an invitation: new people create an account, others sign in, and both become members.
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { ButtonLink } from '../../parts/form/button.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { sessionQuery } from '../../shell/session.ts'
import { access } from '../../texts/access.ts'
import { AccessForm } from './access-form.tsx'
import { AccessFrame } from './access-frame.tsx'
import { useEnter } from './enter.ts'
import { useLinkToken } from './link-token.ts'
import { NameField, NewPasswordField, PasswordField } from './person-fields.tsx'

const texts = access.invitation

export function Invitation() {
  const token = useLinkToken()
  if (token) return <WithToken token={token} />
  return (
    <AccessFrame title={texts.loading}>
      <p className="text-muted">{texts.noToken}</p>
      <ButtonLink to="/sign-in">{access.toSignIn}</ButtonLink>
    </AccessFrame>
  )
}

function WithToken({ token }: { token: string }) {
  const session = useQuery(sessionQuery)
  const preview = useQuery({
    queryKey: ['invitation', token],
    queryFn: () => read(api.POST('/v1/invitations/preview', { body: { token } })),
  })
  if (preview.data && !session.isPending)
    return <Accept token={token} preview={preview.data} signedInAs={session.data?.person.email ?? null} />
  return (
    <AccessFrame title={texts.loading}>
      <Loaded query={preview}>{() => null}</Loaded>
    </AccessFrame>
  )
}

interface AcceptProps {
  token: string
  preview: Schemas['InvitationPreview']
  signedInAs: string | null
}

function Accept({ token, preview, signedInAs }: AcceptProps) {
  const { organizationName, email, role, knownPerson } = preview
  const enter = useEnter()
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const needs = !knownPerson ? 'account' : signedInAs === email ? 'nothing' : 'password'
  const given = { account: { name, password }, password: { password }, nothing: {} }[needs]
  const sending = useMutation({
    mutationFn: () => read(api.POST('/v1/invitations/accept', { body: { token, ...given } })),
    onSuccess: enter,
  })
  return (
    <AccessFrame title={texts.title(organizationName)} lead={texts.lead(email, texts.roles[role])}>
      <AccessForm submit={texts.accept} sending={sending}>
        {needs === 'account' && (
          <>
            <NameField value={name} onChange={setName} />
            <NewPasswordField label={access.password} value={password} onChange={setPassword} />
          </>
        )}
        {needs === 'password' && (
          <>
            <p className="text-muted">{texts.known}</p>
            <PasswordField value={password} onChange={setPassword} hint={texts.knownElse} />
          </>
        )}
      </AccessForm>
    </AccessFrame>
  )
}
