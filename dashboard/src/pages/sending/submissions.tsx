// The list of sends, newest first, with filters. Each row opens its send.
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { SearchX, Send } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { CodeBlock } from '../../parts/code-block.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Button, ButtonLink } from '../../parts/form/button.tsx'
import { PagedTable } from '../../parts/list/paged-table.tsx'
import type { Column } from '../../parts/list/table.tsx'
import { timeColumn } from '../../parts/list/time-column.tsx'
import { Page } from '../../parts/page.tsx'
import { useSession } from '../../shell/session.ts'
import { keys } from '../../texts/keys.ts'
import { life } from '../../texts/life.ts'
import { sending } from '../../texts/sending.ts'
import { shell } from '../../texts/shell.ts'
import { FilterBar } from './filter-bar.tsx'
import { type Filters, hasFilters, queryOf } from './filters.ts'
import type { Submission } from './journey.ts'
import { stateOf } from './submission-state.ts'

const pageSize = 50
/** The polling intervals for changes that the live stream does not announce. */
const [livelyMs, calmMs] = [8_000, 30_000]
/** Longer lists are not polled as a whole. */
const mostLivePages = 2

export function Submissions() {
  const { status, recipient, inbox, period, since, until } = useSearch({ strict: false }) as Filters
  const filters = { status, recipient, inbox, period, since, until }
  const navigate = useNavigate()
  const query = useSubmissions(filters)
  const hasRows = query.data?.pages.some(({ submissions }) => submissions.length > 0)
  const change = (next: Filters) => void navigate({ to: '/sending', search: { ...next }, replace: true })
  return (
    <Page title={shell.pages.sending} lead={sending.lead}>
      {(hasRows || hasFilters(filters)) && <FilterBar filters={filters} onChange={change} />}
      <PagedTable
        query={query}
        rowsOf={({ submissions }) => submissions}
        label={sending.list}
        columns={columns}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/sending/${id}`}
        empty={hasFilters(filters) ? <NoMatch onClear={() => change({})} /> : <NothingSent />}
      />
    </Page>
  )
}

function useSubmissions(filters: Filters) {
  return useInfiniteQuery({
    queryKey: ['submissions', filters],
    queryFn: ({ pageParam: cursor }) => {
      const query = { ...queryOf(filters, Date.now()), limit: pageSize, cursor }
      return read(api.GET('/v1/submissions', { params: { query } }))
    },
    ...paged,
    refetchInterval: ({ state: { data } }) => {
      if (!data || data.pages.length > mostLivePages) return false
      const isMoving = data.pages[0]?.submissions.some(({ status }) => status === 'pending')
      return isMoving ? livelyMs : calmMs
    },
  })
}

const columns: Column<Submission>[] = [
  {
    id: 'to',
    header: sending.columns.to,
    className: 'max-w-0 w-1/3',
    cell: ({ recipients: [first, ...others] }) => (
      <span className="block truncate font-medium">
        {first?.email}
        {others.length > 0 && <span className="font-normal text-faint"> {sending.more(others.length)}</span>}
      </span>
    ),
  },
  {
    id: 'state',
    header: sending.columns.state,
    aside: true,
    cell: (submission) => <StateBadge state={stateOf(submission)} />,
  },
  {
    id: 'subject',
    header: sending.columns.subject,
    className: 'max-w-0 w-1/3',
    cell: ({ subject }) => <span className="block truncate">{subject || life.erasedSubject}</span>,
  },
  {
    id: 'from',
    header: sending.columns.from,
    className: 'max-w-0 w-1/3',
    cell: ({ from }) => <span className="block truncate text-muted">{from.email}</span>,
  },
  timeColumn(sending.columns.at, ({ createdAt }) => createdAt),
]

function NothingSent() {
  const hasServerKeys = useSession().organization?.serverKeys
  return (
    <Empty
      icon={Send}
      title={sending.none}
      action={
        <ButtonLink to="/mail" variant="primary">
          {sending.noneAction}
        </ButtonLink>
      }
      code={<CodeBlock code={firstSend} label={sending.noneCode} />}
    >
      <p>{sending.noneWhat}</p>
      <p className="mt-2">{hasServerKeys ? sending.serverKey : keys.serverUngranted}</p>
    </Empty>
  )
}

const firstSend = `curl "${location.origin}/v1/inboxes/$INBOX/messages" \\
  -H "x-api-key: $POSTHORN_KEY" \\
  -H "idempotency-key: first-mail" \\
  -H "content-type: application/json" \\
  -d '{"to": [{"email": "ada@example.com"}],
       "subject": "Hello", "text": "The first one."}'`

function NoMatch({ onClear }: { onClear: () => void }) {
  return (
    <Empty icon={SearchX} title={sending.noMatch} action={<Button onClick={onClear}>{sending.clear}</Button>}>
      {sending.noMatchWhat}
    </Empty>
  )
}
