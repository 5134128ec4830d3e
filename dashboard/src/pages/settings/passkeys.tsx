// The passkeys of a person: add one from this device, rename, remove.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Fingerprint, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, read, type Schemas } from '../../api/client.ts'
import { Card } from '../../parts/card.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button, IconButton } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { Skeleton } from '../../parts/list/skeleton.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/time.tsx'
import { toast } from '../../parts/toasts.ts'
import { useSession } from '../../shell/session.ts'
import { settings } from '../../texts/settings.ts'
import { makePasskey } from '../access/passkey.ts'

const texts = settings.passkeys
const queryKey = ['passkeys']
/** A younger session needs no password to add a passkey. The server's own limit is slightly longer. */
const recentMs = 4 * 60_000
type Passkey = Schemas['Passkey']

export function Passkeys() {
  const query = useQuery({ queryKey, queryFn: () => read(api.GET('/v1/passkeys')) })
  return (
    <Card title={texts.title} lead={texts.lead}>
      <Loaded query={query} waiting={<Skeleton className="h-11" />}>
        {({ passkeys }) =>
          passkeys.length === 0 ? (
            <p className="text-muted">{texts.none}</p>
          ) : (
            <ul className="divide-y rounded-md border">
              {passkeys.map((passkey) => (
                <PasskeyRow key={passkey.id} passkey={passkey} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {'PublicKeyCredential' in window ? <Add /> : <p className="mt-4 text-muted">{texts.unsupported}</p>}
    </Card>
  )
}

function Add() {
  const queries = useQueryClient()
  const { person, createdAt } = useSession()
  const [name, setName] = useState(texts.suggested)
  const [password, setPassword] = useState('')
  const asksPassword = person.hasPassword && Date.now() - Date.parse(createdAt) > recentMs
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => {
      const response = await makePasskey(
        await read(api.POST('/v1/passkeys/registration', { body: asksPassword ? { password } : {} })),
      )
      return response && read(api.POST('/v1/passkeys', { body: { name, response } }))
    },
    onSuccess: async (passkey) => {
      if (!passkey) return
      setPassword('')
      toast(texts.added)
      await queries.invalidateQueries({ queryKey })
    },
  })
  return (
    <form
      className="mt-4 grid gap-3"
      onSubmit={(event) => {
        event.preventDefault()
        mutate()
      }}
    >
      <div className="flex flex-wrap items-end gap-2">
        <div className="min-w-56 flex-1">
          <TextField
            label={texts.name}
            value={name}
            required
            maxLength={100}
            onChange={(event) => setName(event.target.value)}
          />
        </div>
        {asksPassword && (
          <div className="min-w-56 flex-1">
            <TextField
              label={texts.password}
              type="password"
              autoComplete="current-password"
              value={password}
              required
              maxLength={200}
              onChange={(event) => setPassword(event.target.value)}
            />
          </div>
        )}
        <Button type="submit" icon={Fingerprint} busy={isPending}>
          {texts.add}
        </Button>
      </div>
      <ErrorNote error={error} />
    </form>
  )
}

function PasskeyRow({ passkey: { id, name, createdAt, lastUsedAt } }: { passkey: Passkey }) {
  const [isAsking, setIsAsking] = useState(false)
  return (
    <li className="flex items-center gap-3 px-3 py-2">
      <Fingerprint size={18} className="shrink-0 text-faint" aria-hidden />
      <div className="min-w-0 flex-1">
        <p className="truncate font-medium">{name}</p>
        <p className="text-sm text-faint">
          {texts.created} <Time value={createdAt} />,{' '}
          {lastUsedAt ? (
            <>
              {texts.lastUsed} <Time value={lastUsedAt} />
            </>
          ) : (
            texts.never
          )}
        </p>
      </div>
      <IconButton
        size="small"
        icon={Trash2}
        label={texts.removeOne(name)}
        onClick={() => setIsAsking(true)}
      />
      {isAsking && <Remove id={id} name={name} onClose={() => setIsAsking(false)} />}
    </li>
  )
}

function Remove({ id, name, onClose }: { id: string; name: string; onClose: () => void }) {
  const queries = useQueryClient()
  return (
    <Confirm
      onClose={onClose}
      title={texts.removeTitle}
      deed={texts.remove}
      change={() => read(api.DELETE('/v1/passkeys/{passkeyId}', { params: { path: { passkeyId: id } } }))}
      onDone={async () => {
        onClose()
        await queries.invalidateQueries({ queryKey })
      }}
    >
      {texts.removeWhat(name)}
    </Confirm>
  )
}
