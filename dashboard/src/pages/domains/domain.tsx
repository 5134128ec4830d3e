// One domain: its permissions, the records to publish, its keys, its traffic, and its removal.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { SearchX, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { api, read } from '../../api/client.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { isMissing } from '../../parts/error-note.tsx'
import { Button, ButtonLink } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { toast } from '../../parts/toasts.ts'
import { unicodeDomain } from '../../parts/unicode-domain.ts'
import { useMay } from '../../shell/session.ts'
import { domains } from '../../texts/domains.ts'
import { shell } from '../../texts/shell.ts'
import { DkimCard } from './dkim-card.tsx'
import { type Domain, domainQuery, domainsQuery } from './domain-queries.ts'
import { Records } from './records.tsx'
import { TrafficCard } from './traffic-card.tsx'
import { VerifyCard } from './verify-card.tsx'
import { ZoneCard } from './zone-card.tsx'

const route = getRouteApi('/frame/domains/$domainId')
const crumbs = [{ label: shell.pages.domains, to: '/domains' }]

export function DomainPage() {
  const { domainId } = route.useParams()
  const query = useQuery(domainQuery(domainId))
  if (!query.data)
    return (
      <Page title={domains.name} crumbs={crumbs}>
        {isMissing(query.error) ? (
          <Empty
            icon={SearchX}
            title={domains.gone}
            action={<ButtonLink to="/domains">{shell.pages.domains}</ButtonLink>}
          >
            {domains.goneWhat}
          </Empty>
        ) : (
          <Loaded query={query}>{() => null}</Loaded>
        )}
      </Page>
    )
  return <OneDomain key={domainId} domain={query.data} />
}

function OneDomain({ domain }: { domain: Domain }) {
  const name = unicodeDomain(domain.domain)
  return (
    <Page
      title={name}
      badge={<StateBadge state={domain.status} />}
      lead={name === domain.domain ? undefined : domain.domain}
      crumbs={crumbs}
      actions={<DeleteDomain domain={domain} />}
    >
      <div className="grid gap-5">
        <VerifyCard domain={domain} />
        <Records domain={domain} />
        <ZoneCard domain={domain} />
        <DkimCard domain={domain} />
        {domain.verifiedAt && <TrafficCard domainId={domain.id} />}
      </div>
    </Page>
  )
}

function DeleteDomain({ domain: { id, domain } }: { domain: Domain }) {
  const [isAsking, setIsAsking] = useState(false)
  const queries = useQueryClient()
  const navigate = useNavigate()
  if (!useMay('change')) return null
  return (
    <>
      <Button variant="danger" icon={Trash2} onClick={() => setIsAsking(true)}>
        {domains.delete}
      </Button>
      <Confirm
        open={isAsking}
        onClose={() => setIsAsking(false)}
        title={domains.deleteTitle(domain)}
        deed={domains.delete}
        word={domain}
        change={() => read(api.DELETE('/v1/domains/{domainId}', { params: { path: { domainId: id } } }))}
        onDone={async () => {
          toast(domains.deleted(domain))
          await navigate({ to: '/domains' })
          queries.removeQueries({ queryKey: domainQuery(id).queryKey })
          await queries.invalidateQueries({ queryKey: domainsQuery.queryKey })
        }}
      >
        {domains.deleteWhat}
      </Confirm>
    </>
  )
}
