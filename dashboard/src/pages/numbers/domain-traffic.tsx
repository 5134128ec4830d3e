// The traffic of each of the organization's domains today, with a link to the domain's page.
import { useQuery } from '@tanstack/react-query'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { ButtonLink } from '../../parts/form/button.tsx'
import { type Column, Table } from '../../parts/list/table.tsx'
import { count, percent } from '../../parts/numbers.ts'
import { numbers } from '../../texts/numbers.ts'
import { parts } from '../../texts/parts.ts'
import { domainsQuery, trafficQuery } from './queries.ts'

interface Domain {
  id: string
  domain: string
}

const shownDomains = 8

/** Renders nothing without domains, which have their own page. */
export function DomainTraffic() {
  const { data } = useQuery(domainsQuery(shownDomains))
  if (!data?.domains.length) return null
  const all = (
    <ButtonLink size="small" to="/domains">
      {numbers.allDomains}
    </ButtonLink>
  )
  return (
    <Card title={numbers.domains} lead={numbers.domainsLead} actions={all} flush>
      <Table
        label={numbers.domains}
        columns={columns}
        rows={data.domains}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/domains/${id}`}
      />
    </Card>
  )
}

const columns: Column<Domain>[] = [
  {
    id: 'domain',
    header: numbers.domain,
    className: 'max-w-0 w-full',
    cell: ({ domain }) => <span className="block truncate font-medium">{domain}</span>,
  },
  {
    id: 'state',
    header: numbers.state,
    aside: true,
    cell: ({ id }) => <State domainId={id} />,
  },
  {
    id: 'sent',
    header: numbers.sentToday,
    align: 'right',
    cell: ({ id }) => <Used domainId={id} name="sentToday" />,
  },
  {
    id: 'received',
    header: numbers.receivedToday,
    align: 'right',
    cell: ({ id }) => <Used domainId={id} name="receivedToday" />,
  },
  {
    id: 'bounced',
    header: numbers.bounceRate,
    align: 'right',
    cell: ({ id }) => <Bounced domainId={id} />,
  },
]

function State({ domainId }: { domainId: string }) {
  const { data: traffic } = useQuery(trafficQuery(domainId))
  return (
    <span className="block w-22" title={traffic?.reasons.join(' ')}>
      {traffic && <StateBadge state={traffic.status} />}
    </span>
  )
}

function Used({ domainId, name }: { domainId: string; name: 'sentToday' | 'receivedToday' }) {
  const { data: traffic } = useQuery(trafficQuery(domainId))
  return <span className="whitespace-nowrap">{traffic ? count(traffic.usage[name]) : ''}</span>
}

function Bounced({ domainId }: { domainId: string }) {
  const { data: traffic } = useQuery(trafficQuery(domainId))
  const rate = traffic?.usage.bounceRate24h
  if (rate === undefined) return null
  return <span className="whitespace-nowrap">{rate === null ? parts.notAvailable : percent(rate)}</span>
}
