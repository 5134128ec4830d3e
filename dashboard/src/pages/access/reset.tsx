// A lost password: one form asks for the link, which leads back here to a form for a new password.
import { useMutation, useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button, ButtonLink } from '../../parts/form/button.tsx'
import { Checkbox } from '../../parts/form/field.tsx'
import { Time } from '../../parts/time.tsx'
import { access } from '../../texts/access.ts'
import { AccessForm } from './access-form.tsx'
import { AccessFrame } from './access-frame.tsx'
import { useEnter } from './enter.ts'
import { useLinkToken } from './link-token.ts'
import { EmailField, NewPasswordField } from './person-fields.tsx'

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
  const preview = useQuery({
    queryKey: ['reset', token],
    queryFn: () => read(api.POST('/v1/resets/preview', { body: { token } })),
  })
  const again = (
    <Button variant="quiet" onClick={onAskAgain}>
      {texts.expiredHint}
    </Button>
  )
  // Without the list there is no choice, and the button would remove entries that were never shown.
  if (preview.error && !preview.data)
    return (
      <AccessFrame title={texts.newTitle}>
        <ErrorNote error={preview.error} onRetry={() => void preview.refetch()} />
        {again}
      </AccessFrame>
    )
  return <NewPasswordForm token={token} preview={preview.data} again={again} />
}

interface FormProps {
  token: string
  /** Undefined while it loads. */
  preview: Schemas['ResetPreview'] | undefined
  again: ReactNode
}

function NewPasswordForm({ token, preview, again }: FormProps) {
  const enter = useEnter()
  const [password, setPassword] = useState('')
  const [keep, setKeep] = useState<readonly string[]>([])
  const sending = useMutation({
    mutationFn: () => read(api.POST('/v1/resets/complete', { body: { token, password, keep: [...keep] } })),
    onSuccess: enter,
  })
  const { added = [], unlisted = 0 } = preview ?? {}
  const removed = added.filter(({ id }) => !keep.includes(id)).length + unlisted
  const { mutate, error } = sending
  const isPending = sending.isPending || !preview
  return (
    <AccessFrame title={texts.newTitle} lead={texts.newLead}>
      <AccessForm
        submit={texts.newSubmit(removed)}
        sending={{ mutate, error, isPending }}
        below={error && again}
      >
        <NewPasswordField label={access.newPassword} value={password} onChange={setPassword} />
        <AddedEntries added={added} unlisted={unlisted} keep={keep} onChange={setKeep} />
      </AccessForm>
    </AccessFrame>
  )
}

interface AddedProps extends AddedGroupProps {
  unlisted: number
}

/** The entries that another person may have added: sign-in methods, then what was made in each organization. */
function AddedEntries({ added, unlisted, ...choice }: AddedProps) {
  if (added.length === 0) return null
  const ways = added.filter(({ organization }) => organization === null)
  const made = added.filter(({ organization }) => organization !== null)
  const groups = Map.groupBy([...ways, ...made], ({ organization }) => organization?.id)
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-4">
      <p className="text-muted">{texts.added}</p>
      {made.length > 0 && <p className="text-muted">{texts.stops}</p>}
      {[...groups].map(([id, some]) => (
        <fieldset key={id ?? ''} className="min-w-0">
          <legend className="mb-1.5 text-sm font-medium break-words text-ink">
            {some[0]!.organization?.name ?? texts.ways}
          </legend>
          <AddedGroup added={some} {...choice} />
        </fieldset>
      ))}
      {unlisted > 0 && <p className="text-muted">{texts.unlisted(unlisted)}</p>}
    </div>
  )
}

interface AddedGroupProps {
  added: Schemas['ResetPreview']['added']
  /** Ids of the entries that stay. */
  keep: readonly string[]
  onChange: (keep: readonly string[]) => void
}

function AddedGroup({ added, keep, onChange }: AddedGroupProps) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2">
      {added.map(({ id, kind, name, addedAt }) => (
        <Checkbox
          key={id}
          label={texts.keep[kind](name ?? '')}
          hint={<Time value={addedAt} />}
          checked={keep.includes(id)}
          onChange={(checked) => onChange(checked ? [...keep, id] : keep.filter((one) => one !== id))}
        />
      ))}
    </div>
  )
}
