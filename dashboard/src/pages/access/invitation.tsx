// The landing of an invitation: who is new gets an account, who has one signs in to it, and both are members then.
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { Button, ButtonLink } from '../../parts/button.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { TextField } from '../../parts/field.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { sessionQuery } from '../../shell/session.ts'
import { access } from '../../texts/access.ts'
import { AccessFrame } from './access-frame.tsx'
import { useEnter } from './enter.ts'
import { useLinkToken } from './link-token.ts'
import { NewPasswordField } from './new-password-field.tsx'

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
    queryFn: () => read(api.GET('/v1/invitations/preview', { params: { query: { token } } })),
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
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => read(api.POST('/v1/invitations/accept', { body: { token, ...given } })),
    onSuccess: enter,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  return (
    <AccessFrame title={texts.title(organizationName)} lead={texts.lead(email, texts.roles[role])}>
      <form onSubmit={submit} className="grid gap-4">
        {needs === 'account' && <NameField value={name} onChange={setName} />}
        {needs === 'account' && (
          <NewPasswordField label={access.password} value={password} onChange={setPassword} />
        )}
        {needs === 'password' && <KnownPassword value={password} onChange={setPassword} />}
        <ErrorNote error={error} />
        <Button type="submit" variant="primary" busy={isPending}>
          {texts.accept}
        </Button>
      </form>
    </AccessFrame>
  )
}

interface InputProps {
  value: string
  onChange: (value: string) => void
}

function NameField({ value, onChange }: InputProps) {
  return (
    <TextField
      label={access.name}
      name="name"
      autoComplete="name"
      required
      maxLength={100}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

function KnownPassword({ value, onChange }: InputProps) {
  return (
    <>
      <p className="text-muted">{texts.known}</p>
      <TextField
        label={access.password}
        type="password"
        name="password"
        autoComplete="current-password"
        required
        value={value}
        hint={texts.knownElse}
        onChange={(event) => onChange(event.target.value)}
      />
    </>
  )
}
