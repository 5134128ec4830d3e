// All organizations, searchable by name, id and status, each with its counts and its waiting mail.

import { Building2, SearchX } from 'lucide-react'
import { useDeferredValue, useState } from 'react'
import { StateBadge } from '../parts/badge.tsx'
import { CodeBlock } from '../parts/code-block.tsx'
import { Empty } from '../parts/empty.tsx'
import { Select } from '../parts/form/field.tsx'
import { SearchField } from '../parts/form/search-field.tsx'
import { PagedTable } from '../parts/list/paged-table.tsx'
import type { Column } from '../parts/list/table.tsx'
import { timeColumn } from '../parts/list/time-column.tsx'
import { TwoLines } from '../parts/list/two-lines.tsx'
import { count } from '../parts/numbers.ts'
import { Page } from '../parts/page.tsx'
import { desk } from '../texts/desk.ts'
import { states } from '../texts/states.ts'
import type { Answer } from './client.ts'
import { useOrganizations } from './queries.ts'

type List = Answer<'/organizations'>

const { organizations: words } = desk
type Row = List['organizations'][number]
type Status = Row['status']

const statuses = ['pending', 'active', 'suspended', 'deleting'] as const

const columns: readonly Column<Row>[] = [
  { id: 'name', header: words.name, cell: ({ name, owner }) => <TwoLines first={name} second={owner} /> },
  {
    id: 'status',
    header: words.status,
    aside: true,
    cell: ({ status }) => <StateBadge state={status} />,
    className: 'w-28',
  },
  number('inboxes', words.inboxes),
  number('domains', words.domains),
  number('keys', words.keys),
  number('waiting', words.waiting),
  timeColumn<Row>(words.created, ({ createdAt }) => createdAt),
]

function number(id: 'inboxes' | 'domains' | 'keys' | 'waiting', header: string): Column<Row> {
  return {
    id,
    header,
    align: 'right',
    className: 'w-20',
    cell: (row) => <span className={row[id] === 0 ? 'text-faint' : ''}>{count(row[id])}</span>,
  }
}

export function Organizations() {
  const [search, setSearch] = useState('')
  const [status, setStatus] = useState<Status | ''>('')
  const filter = { search: useDeferredValue(search), status }
  const query = useOrganizations(filter)
  const counts = query.data?.pages[0]?.counts
  return (
    <Page title={words.title}>
      <Filters search={search} setSearch={setSearch} status={status} setStatus={setStatus} counts={counts} />
      <PagedTable
        query={query}
        rowsOf={({ organizations }) => organizations}
        label={words.title}
        columns={columns}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/organizations/${id}`}
        empty={<None isFiltered={filter.search !== '' || status !== ''} />}
      />
    </Page>
  )
}

interface FiltersProps {
  search: string
  setSearch: (search: string) => void
  status: Status | ''
  setStatus: (status: Status | '') => void
  counts: List['counts'] | undefined
}

function Filters({ search, setSearch, status, setStatus, counts }: FiltersProps) {
  const total = counts && Object.values(counts).reduce((sum, one) => sum + one, 0)
  const counted = (label: string, of: number | undefined) =>
    of === undefined ? label : `${label} (${count(of)})`
  const options = [
    { value: '', label: counted(words.every, total) },
    ...statuses.map((value) => ({
      value,
      label: counted((states as Record<string, string>)[value] ?? value, counts?.[value]),
    })),
  ]
  return (
    <search className="mb-4 grid gap-3 sm:grid-cols-[minmax(0,1fr)_220px]">
      <SearchField label={words.search} group={words.title} value={search} onChange={setSearch} />
      <Select
        label={words.status}
        labelHidden
        options={options}
        value={status}
        onChange={(event) => setStatus(event.target.value as Status | '')}
      />
    </search>
  )
}

function None({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty icon={SearchX} title={words.none}>
        {words.noneWhat}
      </Empty>
    )
  const code = <CodeBlock code="bin/posthorn org create --name Acme --active" label={words.empty} />
  return (
    <Empty icon={Building2} title={words.empty} code={code}>
      {words.emptyWhat}
    </Empty>
  )
}
