// The sign-up: an account, whose address is confirmed by mail.
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { Button, ButtonLink } from '../../parts/button.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { TextField } from '../../parts/field.tsx'
import { access } from '../../texts/access.ts'
import { AccessFrame } from './access-frame.tsx'
import { accessQuery } from './access-query.ts'
import { NewPasswordField } from './new-password-field.tsx'

const texts = access.signUp

export function SignUp() {
  const way = useQuery(accessQuery)
  const [sentTo, setSentTo] = useState<string | null>(null)
  if (sentTo)
    return (
      <AccessFrame title={texts.sentTitle} lead={texts.sent(sentTo)}>
        <p className="text-sm text-muted">{texts.sentHint}</p>
        <ButtonLink to="/sign-in">{access.toSignIn}</ButtonLink>
      </AccessFrame>
    )
  if (way.data?.signUp === false)
    return (
      <AccessFrame title={texts.title} lead={texts.closed}>
        <ButtonLink to="/sign-in">{access.toSignIn}</ButtonLink>
      </AccessFrame>
    )
  return (
    <AccessFrame title={texts.title} lead={texts.lead} footer={<Footer />}>
      <SignUpForm onSent={setSentTo} />
    </AccessFrame>
  )
}

function SignUpForm({ onSent }: { onSent: (email: string) => void }) {
  const [name, setName] = useState('')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => read(api.POST('/v1/sign-up', { body: { email, password, name } })),
    onSuccess: () => onSent(email),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  return (
    <form onSubmit={submit} className="grid gap-4">
      <TextField
        label={access.name}
        name="name"
        autoComplete="name"
        required
        maxLength={100}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <TextField
        label={access.email}
        type="email"
        name="email"
        autoComplete="username"
        required
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      <NewPasswordField label={access.password} value={password} onChange={setPassword} />
      <ErrorNote error={error} />
      <Button type="submit" variant="primary" busy={isPending}>
        {texts.submit}
      </Button>
    </form>
  )
}

function Footer() {
  return (
    <p>
      {texts.known}{' '}
      <Link to="/sign-in" className="underline underline-offset-3 hover:text-ink">
        {access.signIn.submit}
      </Link>
    </p>
  )
}
