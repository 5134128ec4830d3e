// The list of sends, newest first, with filters and with a link from each row to its send.
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { SearchX, Send } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import { paged } from '../../api/paged.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { CodeBlock } from '../../parts/code-block.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Button, ButtonLink } from '../../parts/form/button.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
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
const rowPx = 60
/** The polling intervals for changes that the live stream does not announce. */
const [livelyMs, calmMs] = [8_000, 30_000]
/** Longer lists are not polled as a whole. */
const mostLivePages = 2

export function Submissions() {
  const { status, recipient, inbox, period, since, until } = useSearch({ strict: false }) as Filters
  const filters = { status, recipient, inbox, period, since, until }
  const navigate = useNavigate()
  const query = useSubmissions(filters)
  const rows = query.data?.pages.flatMap(({ submissions }) => submissions) ?? []
  const change = (next: Filters) => void navigate({ to: '/sending', search: { ...next }, replace: true })
  return (
    <Page title={shell.pages.sending} lead={sending.lead}>
      {(rows.length > 0 || hasFilters(filters)) && <FilterBar filters={filters} onChange={change} />}
      <div className="overflow-clip rounded-lg border bg-surface">
        <VirtualList
          label={sending.list}
          query={query}
          rows={rows}
          keyOf={({ id }) => id}
          rowPx={rowPx}
          className="max-h-[max(420px,calc(100dvh-270px))] overflow-y-auto"
          empty={hasFilters(filters) ? <NoMatch onClear={() => change({})} /> : <NothingSent />}
        >
          {(submission) => <SubmissionRow submission={submission} />}
        </VirtualList>
      </div>
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

function SubmissionRow({ submission }: { submission: Submission }) {
  const { id, recipients, subject, from, createdAt } = submission
  const [first, ...others] = recipients
  return (
    <Link
      to="/sending/$submissionId"
      params={{ submissionId: id }}
      data-row
      className="grid h-full grid-cols-[minmax(0,1fr)_auto] content-center items-center gap-x-4 border-b px-4 -outline-offset-2 hover:bg-hover sm:grid-cols-[140px_minmax(0,1fr)_minmax(0,1fr)_92px] sm:px-5"
    >
      <span className="order-2 flex sm:order-none">
        <StateBadge state={stateOf(submission)} />
      </span>
      <span className="order-1 min-w-0 sm:order-none">
        <span className="block truncate font-medium">
          {first?.email}
          {others.length > 0 && (
            <span className="font-normal text-faint"> {sending.more(others.length)}</span>
          )}
        </span>
        <span className="block truncate text-sm text-muted sm:text-faint">
          <span className="sm:hidden">{subject || life.erasedSubject}</span>
          <span className="hidden sm:inline">{sending.from(from.email)}</span>
        </span>
      </span>
      <span className="hidden min-w-0 truncate text-muted sm:block">{subject || life.erasedSubject}</span>
      <Time value={createdAt} className="numbers hidden text-right text-sm text-faint sm:block" />
    </Link>
  )
}

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

const firstSend = `curl "${location.origin}/v1/inboxes/$INBOX/messages" -H "x-api-key: $POSTHORN_KEY" \\
  -H "idempotency-key: first-mail" -H "content-type: application/json" \\
  -d '{"to": [{"email": "ada@example.com"}], "subject": "Hello", "text": "The first one."}'`

function NoMatch({ onClear }: { onClear: () => void }) {
  return (
    <Empty icon={SearchX} title={sending.noMatch} action={<Button onClick={onClear}>{sending.clear}</Button>}>
      {sending.noMatchWhat}
    </Empty>
  )
}
