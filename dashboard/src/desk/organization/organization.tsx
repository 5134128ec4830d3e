// One organization: its state, its last day, its limits, its members, domains and keys.

import { useParams } from '@tanstack/react-router'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { LoadedPage } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Organization as Shown } from '../client.ts'
import { useOrganization } from '../queries.ts'
import { Deeds } from './deeds.tsx'
import { Domains, Keys, Members } from './holdings.tsx'
import { LastDay } from './last-day.tsx'
import { LimitsCard } from './limits.tsx'

const { organization: words } = desk
const crumbs = [{ label: desk.pages.organizations, to: '/organizations' }]

export function Organization() {
  const { organizationId = '' } = useParams({ strict: false }) as { organizationId?: string }
  const query = useOrganization(organizationId)
  return (
    <LoadedPage query={query} title={desk.pages.organizations} crumbs={crumbs}>
      {(organization) => <View key={organization.id} organization={organization} />}
    </LoadedPage>
  )
}

function View({ organization }: { organization: Shown }) {
  return (
    <Page
      title={organization.name}
      badge={<StateBadge state={organization.status} />}
      lead={organization.isOwn ? words.ownNote : notes[organization.status]}
      crumbs={crumbs}
      actions={organization.isOwn ? null : <Deeds organization={organization} />}
    >
      <div className="grid items-start gap-5 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div className="grid min-w-0 gap-5">
          <LastDay lastDay={organization.lastDay} />
          <Members members={organization.members} />
          <Domains domains={organization.domains} />
          <Keys keys={organization.keys} />
        </div>
        <div className="grid min-w-0 gap-5">
          <Facts organization={organization} />
          <LimitsCard organization={organization} />
        </div>
      </div>
    </Page>
  )
}

const notes: Partial<Record<Shown['status'], string>> = {
  pending: words.pendingNote,
  suspended: words.suspendedNote,
  deleting: words.deleting,
}

function Facts({ organization: { id, createdAt, updatedAt, waiting } }: { organization: Shown }) {
  return (
    <Card title={words.facts}>
      <DefinitionList
        items={[
          [
            words.id,
            <span key="id" className="flex items-center gap-1">
              <code className="min-w-0 text-sm break-all">{id}</code>
              <CopyButton text={id} what={words.id} />
            </span>,
          ],
          [words.created, <Time key="created" value={createdAt} />],
          [words.changed, <Time key="changed" value={updatedAt} />],
          [words.waiting, waiting.toLocaleString('en')],
        ]}
      />
    </Card>
  )
}
