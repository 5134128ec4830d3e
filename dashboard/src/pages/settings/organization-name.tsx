// The organization's name, which owners can change, and its id.
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { type Session, useMay, useTakeSession } from '../../shell/session.ts'
import { settings } from '../../texts/settings.ts'
import { NameForm } from './name-form.tsx'

const texts = settings.organization

type Organization = NonNullable<Session['organization']>

export function OrganizationName({ organization }: { organization: Organization }) {
  const takeSession = useTakeSession()
  const [name, setName] = useState(organization.name)
  const change = useMutation({
    mutationFn: () => read(api.PATCH('/v1/organization', { body: { name } })),
    onSuccess: takeSession,
  })
  const facts = [[texts.id, <Id key="id" organization={organization} />]] as const
  if (!useMay('own'))
    return (
      <Card title={texts.title} lead={texts.lead} actions={<StateBadge state={organization.role} />}>
        <DefinitionList items={[[texts.name, organization.name], ...facts]} />
      </Card>
    )
  return (
    <NameForm
      title={texts.title}
      label={texts.name}
      facts={facts}
      name={name}
      setName={setName}
      saved={organization.name}
      change={change}
    />
  )
}

function Id({ organization }: { organization: Organization }) {
  return (
    <span className="flex items-center gap-1">
      <code className="text-sm break-all">{organization.id}</code>
      <CopyButton text={organization.id} what={texts.id} />
    </span>
  )
}
