// The sign-up for an account, whose address is confirmed by mail.
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { ButtonLink } from '../../parts/form/button.tsx'
import { access } from '../../texts/access.ts'
import { AccessForm } from './access-form.tsx'
import { AccessFrame } from './access-frame.tsx'
import { accessQuery } from './access-query.ts'
import { EmailField, NameField, NewPasswordField } from './person-fields.tsx'

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
  const sending = useMutation({
    mutationFn: () => read(api.POST('/v1/sign-up', { body: { email, password, name } })),
    onSuccess: () => onSent(email),
  })
  return (
    <AccessForm submit={texts.submit} sending={sending}>
      <NameField value={name} onChange={setName} />
      <EmailField value={email} onChange={setEmail} />
      <NewPasswordField label={access.password} value={password} onChange={setPassword} />
    </AccessForm>
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
