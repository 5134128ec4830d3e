// Sign-in without a password: by a passkey of this device, or by the deployment's identity provider.
import { useMutation, useQuery } from '@tanstack/react-query'
import { Fingerprint } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { access } from '../../texts/access.ts'
import { accessQuery } from './access-query.ts'
import { useEnter } from './enter.ts'
import { answerWithPasskey } from './passkey.ts'

const texts = access.signIn

export function OtherWays() {
  const { data: way } = useQuery(accessQuery)
  const canUsePasskey = 'PublicKeyCredential' in window
  if (!canUsePasskey && !way?.oidc) return null
  return (
    <div className="grid gap-3">
      <div className="flex items-center gap-3 text-sm text-faint before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
        {texts.or}
      </div>
      {canUsePasskey && <PasskeyButton />}
      {way?.oidc && <ProviderLink name={way.oidc.name} />}
    </div>
  )
}

function PasskeyButton() {
  const enter = useEnter()
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => {
      const response = await answerWithPasskey(await read(api.POST('/v1/passkeys/challenge', { body: {} })))
      return response && read(api.POST('/v1/session/passkey', { body: { response } }))
    },
    onSuccess: (session) => session && enter(session),
  })
  return (
    <>
      <Button icon={Fingerprint} busy={isPending} onClick={() => mutate()}>
        {texts.passkey}
      </Button>
      <ErrorNote error={error} />
    </>
  )
}

/** A link instead of a form, because the provider's pages follow. */
function ProviderLink({ name }: { name: string }) {
  return (
    <a
      href="/app/v1/oidc/start"
      className="flex h-9 items-center justify-center rounded-md border border-line-strong bg-surface font-medium hover:bg-hover"
    >
      {texts.oidc(name)}
    </a>
  )
}
