// The organization's domains, with the obstacles to each one's use.
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { Globe, Plus } from 'lucide-react'
import { useState } from 'react'
import { StateBadge } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Button } from '../../parts/form/button.tsx'
import { PagedTable } from '../../parts/list/paged-table.tsx'
import type { Column } from '../../parts/list/table.tsx'
import { Page } from '../../parts/page.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { Time } from '../../parts/time.tsx'
import { unicodeDomain } from '../../parts/unicode-domain.ts'
import { useMay } from '../../shell/session.ts'
import { domains } from '../../texts/domains.ts'
import { lists } from '../../texts/lists.ts'
import { shell } from '../../texts/shell.ts'
import { AddDomain } from './add-domain.tsx'
import { countFound, type Domain, domainsQuery } from './domain-queries.ts'

export function Domains() {
  const query = useInfiniteQuery(domainsQuery)
  const { add } = useSearch({ strict: false }) as { add?: string }
  const mayChange = useMay('change')
  const [isAdding, setIsAdding] = useState(add !== undefined && mayChange)
  const navigate = useNavigate()
  const hasRows = query.data?.pages.some((page) => page.domains.length > 0)
  const open = () => mayChange && setIsAdding(true)
  useShortcut({ keys: 'a', label: domains.add, group: lists.group }, open)
  const addButton = mayChange && (
    <Button variant="primary" icon={Plus} onClick={open}>
      {domains.add}
    </Button>
  )
  return (
    <Page title={shell.pages.domains} lead={domains.lead} actions={hasRows && addButton}>
      <PagedTable
        query={query}
        rowsOf={(page) => page.domains}
        label={domains.list}
        columns={columns}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/domains/${id}`}
        empty={<NoDomain action={addButton} />}
      />
      <AddDomain
        open={isAdding}
        onClose={() => {
          setIsAdding(false)
          if (add !== undefined) void navigate({ to: '/domains', replace: true })
        }}
      />
    </Page>
  )
}

const columns: Column<Domain>[] = [
  {
    id: 'name',
    header: domains.name,
    cell: ({ domain }) => <span className="font-medium break-all">{unicodeDomain(domain)}</span>,
  },
  {
    id: 'sending',
    header: domains.sending,
    cell: ({ capabilities }) => <StateBadge state={capabilities.outbound.status} />,
  },
  {
    id: 'receiving',
    header: domains.receiving,
    cell: ({ capabilities }) => <StateBadge state={capabilities.inbound.status} />,
  },
  {
    id: 'records',
    header: domains.records,
    cell: (domain) => {
      const { found, all } = countFound(domain)
      return <span className="numbers text-muted">{domains.recordsFound(found, all)}</span>
    },
  },
  {
    id: 'added',
    header: domains.added,
    align: 'right',
    cell: ({ createdAt }) => <Time value={createdAt} className="text-faint" />,
  },
]

function NoDomain({ action }: { action: React.ReactNode }) {
  return (
    <Empty icon={Globe} title={domains.none} action={action}>
      <p>{domains.noneWhat}</p>
      <ul className="mt-3 grid gap-1.5 text-left">
        {domains.noneReasons.map(([what, why]) => (
          <li key={what} className="flex gap-2">
            <span aria-hidden className="mt-2 size-1.5 shrink-0 rounded-full bg-accent" />
            <span>
              <span className="font-medium text-ink">{what}</span>: {why}.
            </span>
          </li>
        ))}
      </ul>
    </Empty>
  )
}
