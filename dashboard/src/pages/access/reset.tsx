// A lost password: the link is asked for here, and leads back here to a new one.
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { Button, ButtonLink } from '../../parts/button.tsx'
import { Checkbox } from '../../parts/field.tsx'
import { Time } from '../../parts/time.tsx'
import { access } from '../../texts/access.ts'
import { AccessForm } from './access-form.tsx'
import { AccessFrame } from './access-frame.tsx'
import { useEnter } from './enter.ts'
import { useLinkToken } from './link-token.ts'
import { NewPasswordField } from './new-password-field.tsx'
import { EmailField } from './person-fields.tsx'

const texts = access.reset

export function Reset() {
  const token = useLinkToken()
  const [expired, setExpired] = useState<string | null>(null)
  if (token && token !== expired) return <NewPassword token={token} onAskAgain={() => setExpired(token)} />
  return <AskForLink />
}

function AskForLink() {
  const [email, setEmail] = useState('')
  const sending = useMutation({ mutationFn: () => read(api.POST('/v1/resets', { body: { email } })) })
  if (sending.isSuccess)
    return (
      <AccessFrame title={texts.sentTitle} lead={texts.sent(email)}>
        <ButtonLink to="/sign-in">{access.toSignIn}</ButtonLink>
      </AccessFrame>
    )
  const back = (
    <ButtonLink to="/sign-in" variant="quiet">
      {access.toSignIn}
    </ButtonLink>
  )
  return (
    <AccessFrame title={texts.title} lead={texts.lead}>
      <AccessForm submit={texts.submit} sending={sending} below={back}>
        <EmailField value={email} onChange={setEmail} />
      </AccessForm>
    </AccessFrame>
  )
}

function NewPassword({ token, onAskAgain }: { token: string; onAskAgain: () => void }) {
  const enter = useEnter()
  const [password, setPassword] = useState('')
  const [keep, setKeep] = useState<readonly string[]>([])
  // If the link is not good, the button says why.
  const preview = useQuery({
    queryKey: ['reset', token],
    queryFn: () => read(api.POST('/v1/resets/preview', { body: { token } })),
  })
  const sending = useMutation({
    mutationFn: () => read(api.POST('/v1/resets/complete', { body: { token, password, keep: [...keep] } })),
    onSuccess: enter,
  })
  const again = sending.error && (
    <Button variant="quiet" onClick={onAskAgain}>
      {texts.expiredHint}
    </Button>
  )
  return (
    <AccessFrame title={texts.newTitle} lead={texts.newLead}>
      <AccessForm submit={texts.newSubmit} sending={sending} below={again}>
        <NewPasswordField label={access.newPassword} value={password} onChange={setPassword} />
        <Added added={preview.data?.added ?? []} keep={keep} onChange={setKeep} />
      </AccessForm>
    </AccessFrame>
  )
}

interface AddedProps {
  added: Schemas['ResetPreview']['added']
  /** Ids of those that stay. */
  keep: readonly string[]
  onChange: (keep: readonly string[]) => void
}

/** The ways to sign in that somebody else may have added. */
function Added({ added, keep, onChange }: AddedProps) {
  if (added.length === 0) return null
  return (
    <div className="grid gap-2">
      <p className="text-muted">{texts.added}</p>
      {added.map(({ id, name, addedAt }) => (
        <Checkbox
          key={id}
          label={name === null ? texts.keepIdentity : texts.keepPasskey(name)}
          hint={<Time value={addedAt} />}
          checked={keep.includes(id)}
          onChange={(checked) => onChange(checked ? [...keep, id] : keep.filter((one) => one !== id))}
        />
      ))}
    </div>
  )
}
