// The details of a person that others see.
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { useSession, useTakeSession } from '../../shell/session.ts'
import { settings } from '../../texts/settings.ts'
import { NameForm } from './name-form.tsx'

const texts = settings.profile

export function Profile() {
  const { person } = useSession()
  const takeSession = useTakeSession()
  const [name, setName] = useState(person.name)
  const change = useMutation({
    mutationFn: () => read(api.PATCH('/v1/person', { body: { name } })),
    onSuccess: takeSession,
  })
  return (
    <NameForm
      title={texts.title}
      label={texts.name}
      hint={texts.nameHint}
      facts={[[texts.email, person.email]]}
      name={name}
      setName={setName}
      saved={person.name}
      change={change}
    />
  )
}
