// The sign-in: by password, passkey, identity provider, or a link that works once.
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { useIsSigningOut } from '../../shell/sign-out.ts'
import { access } from '../../texts/access.ts'
import { AccessForm } from './access-form.tsx'
import { AccessFrame } from './access-frame.tsx'
import { accessQuery } from './access-query.ts'
import { useEnter } from './enter.ts'
import { useLinkToken } from './link-token.ts'
import { OtherWays } from './other-ways.tsx'
import { EmailField, PasswordField } from './person-fields.tsx'

const texts = access.signIn
const refusals: Record<string, string> = texts.oidcRefused

export function SignIn() {
  const token = useLinkToken()
  const [failed, setFailed] = useState<string | null>(null)
  const way = useQuery(accessQuery)
  const isSigningOut = useIsSigningOut()
  const { refused } = useSearch({ strict: false }) as { refused?: string }
  if (isSigningOut) return <AccessFrame title={texts.signingOut} />
  if (token && token !== failed) return <ByLink key={token} token={token} onFail={() => setFailed(token)} />
  return (
    <AccessFrame title={texts.title} footer={<Footer canSignUp={way.data?.signUp ?? false} />}>
      {failed && <p className="text-muted">{texts.linkFailed}</p>}
      {refused && (
        <p role="alert" className="rounded-md bg-bad-soft px-3 py-2.5 text-bad">
          {refusals[refused] ?? texts.oidcFailed}
        </p>
      )}
      <PasswordForm />
      <OtherWays />
      {way.data?.development && <DevelopmentNote />}
    </AccessFrame>
  )
}

/** Links that were tried. Each is tried once, although React may run effects twice. */
const tried = new Set<string>()

function ByLink({ token, onFail }: { token: string; onFail: () => void }) {
  const enter = useEnter()
  const { mutate, error } = useMutation({
    mutationFn: () => read(api.POST('/v1/session/link', { body: { token } })),
    onSuccess: enter,
  })
  useEffect(() => {
    if (tried.has(token)) return
    tried.add(token)
    mutate()
  }, [token, mutate])
  return (
    <AccessFrame title={error ? texts.title : texts.byLink}>
      <ErrorNote error={error} />
      {error && <Button onClick={onFail}>{access.toSignIn}</Button>}
    </AccessFrame>
  )
}

function PasswordForm() {
  const enter = useEnter()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const sending = useMutation({
    mutationFn: () => read(api.POST('/v1/session', { body: { email, password } })),
    onSuccess: enter,
  })
  return (
    <AccessForm submit={texts.submit} sending={sending}>
      <EmailField value={email} onChange={setEmail} offers="passkeys" />
      <PasswordField value={password} onChange={setPassword} />
    </AccessForm>
  )
}

function DevelopmentNote() {
  return (
    <div className="rounded-md border bg-surface px-4 py-3 text-sm">
      <p className="font-medium">{texts.developmentTitle}</p>
      <p className="text-muted">{texts.development}</p>
    </div>
  )
}

function Footer({ canSignUp }: { canSignUp: boolean }) {
  return (
    <>
      <p>
        <Link to="/reset" className="underline underline-offset-3 hover:text-ink">
          {texts.forgotten}
        </Link>
      </p>
      {canSignUp && (
        <p>
          {texts.noAccount}{' '}
          <Link to="/sign-up" className="underline underline-offset-3 hover:text-ink">
            {texts.signUp}
          </Link>
        </p>
      )}
    </>
  )
}
