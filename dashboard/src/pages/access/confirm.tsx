// The landing page of the confirmation link, which waits for a click because mail scanners follow links too.
import { useMutation } from '@tanstack/react-query'
import { api, read } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button, ButtonLink } from '../../parts/form/button.tsx'
import { access } from '../../texts/access.ts'
import { AccessFrame } from './access-frame.tsx'
import { useEnter } from './enter.ts'
import { useLinkToken } from './link-token.ts'

const texts = access.confirm

export function Confirmation() {
  const token = useLinkToken()
  const enter = useEnter()
  const { mutate, isPending, error } = useMutation({
    mutationFn: (given: string) => read(api.POST('/v1/confirmations', { body: { token: given } })),
    onSuccess: enter,
  })
  if (!token || error)
    return (
      <AccessFrame title={texts.title}>
        {error ? <ErrorNote error={error} /> : <p className="text-muted">{texts.noToken}</p>}
        <ButtonLink to="/sign-in">{access.toSignIn}</ButtonLink>
      </AccessFrame>
    )
  return (
    <AccessFrame title={texts.title} lead={texts.lead}>
      <Button variant="primary" busy={isPending} onClick={() => mutate(token)}>
        {texts.submit}
      </Button>
    </AccessFrame>
  )
}
