// The form that sets a first password or changes it.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, read } from '../../api/client.ts'
import { Card } from '../../parts/card.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { TextField } from '../../parts/form/field.tsx'
import { toast } from '../../parts/toasts.ts'
import { sessionQuery, useSession } from '../../shell/session.ts'
import { settings } from '../../texts/settings.ts'
import { NewPasswordField } from '../access/person-fields.tsx'

const texts = settings.password

export function Password() {
  const { person } = useSession()
  const queries = useQueryClient()
  const [current, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      read(
        api.PUT('/v1/person/password', { body: { password, ...(person.hasPassword ? { current } : {}) } }),
      ),
    onSuccess: async () => {
      setCurrent('')
      setPassword('')
      toast(texts.done)
      await queries.invalidateQueries({ queryKey: sessionQuery.queryKey })
      await queries.invalidateQueries({ queryKey: ['sessions'] })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    mutate()
  }
  return (
    <Card title={texts.title} lead={person.hasPassword ? texts.lead : texts.leadNone}>
      <form onSubmit={submit} className="grid max-w-sm gap-4">
        <input type="text" name="username" autoComplete="username" value={person.email} readOnly hidden />
        {person.hasPassword && <Current value={current} onChange={setCurrent} />}
        <NewPasswordField label={texts.next} value={password} onChange={setPassword} />
        <ErrorNote error={error} />
        <Button type="submit" busy={isPending} className="w-fit">
          {person.hasPassword ? texts.change : texts.set}
        </Button>
      </form>
    </Card>
  )
}

function Current({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <TextField
      label={texts.current}
      type="password"
      name="current-password"
      autoComplete="current-password"
      required
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
