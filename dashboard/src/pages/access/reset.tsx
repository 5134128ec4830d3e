// A lost password: the link is asked for here, and leads back here to a new one.
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { Button, ButtonLink } from '../../parts/button.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { TextField } from '../../parts/field.tsx'
import { access } from '../../texts/access.ts'
import { AccessFrame } from './access-frame.tsx'
import { useEnter } from './enter.ts'
import { useLinkToken } from './link-token.ts'
import { NewPasswordField } from './new-password-field.tsx'

const texts = access.reset

export function Reset() {
  const token = useLinkToken()
  const [expired, setExpired] = useState<string | null>(null)
  if (token && token !== expired) return <NewPassword token={token} onAskAgain={() => setExpired(token)} />
  return <AskForLink />
}

function AskForLink() {
  const [email, setEmail] = useState('')
  const { mutate, isPending, isSuccess, error } = useMutation({
    mutationFn: () => read(api.POST('/v1/resets', { body: { email } })),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  if (isSuccess)
    return (
      <AccessFrame title={texts.sentTitle} lead={texts.sent(email)}>
        <ButtonLink to="/sign-in">{access.toSignIn}</ButtonLink>
      </AccessFrame>
    )
  return (
    <AccessFrame title={texts.title} lead={texts.lead}>
      <form onSubmit={submit} className="grid gap-4">
        <TextField
          label={access.email}
          type="email"
          name="email"
          autoComplete="username"
          required
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
        <ErrorNote error={error} />
        <Button type="submit" variant="primary" busy={isPending}>
          {texts.submit}
        </Button>
        <ButtonLink to="/sign-in" variant="quiet">
          {access.toSignIn}
        </ButtonLink>
      </form>
    </AccessFrame>
  )
}

function NewPassword({ token, onAskAgain }: { token: string; onAskAgain: () => void }) {
  const enter = useEnter()
  const [password, setPassword] = useState('')
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => read(api.POST('/v1/resets/complete', { body: { token, password } })),
    onSuccess: enter,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  return (
    <AccessFrame title={texts.newTitle} lead={texts.newLead}>
      <form onSubmit={submit} className="grid gap-4">
        <NewPasswordField label={access.newPassword} value={password} onChange={setPassword} />
        <ErrorNote error={error} />
        <Button type="submit" variant="primary" busy={isPending}>
          {texts.newSubmit}
        </Button>
        {error && (
          <Button variant="quiet" onClick={onAskAgain}>
            {texts.expiredHint}
          </Button>
        )}
      </form>
    </AccessFrame>
  )
}
