// Mail that only the operator sees: mail to the service's own addresses, and captured mail.

import { useNavigate, useSearch } from '@tanstack/react-router'
import { MailQuestion, PackageOpen } from 'lucide-react'
import { Badge } from '../../parts/badge.tsx'
import { binaryBytes } from '../../parts/bytes.ts'
import { Empty } from '../../parts/empty.tsx'
import { PagedTable } from '../../parts/list/paged-table.tsx'
import type { Column } from '../../parts/list/table.tsx'
import { timeColumn } from '../../parts/list/time-column.tsx'
import { TwoLines } from '../../parts/list/two-lines.tsx'
import { Page } from '../../parts/page.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { desk } from '../../texts/desk.ts'
import type { Answer } from '../client.ts'
import { type MailKind, useMails } from '../queries.ts'

const { mail: words } = desk
type Row = Answer<'/mail/{kind}'>['mails'][number]

const columns: readonly Column<Row>[] = [
  {
    id: 'subject',
    header: words.subject,
    cell: ({ subject, from, sender, isUnread }) => (
      <TwoLines
        first={
          <span className={isUnread ? 'font-bold' : ''}>
            {isUnread && <Badge tone="accent">{words.unread}</Badge>} {subject || words.noSubject}
          </span>
        }
        second={from || sender || words.noSender}
      />
    ),
  },
  {
    id: 'to',
    header: words.to,
    cell: ({ recipients }) => <span className="break-all">{recipients.join(', ')}</span>,
  },
  {
    id: 'size',
    header: words.size,
    align: 'right',
    className: 'w-24',
    cell: ({ sizeBytes }) => binaryBytes(sizeBytes),
  },
  timeColumn(words.at, ({ at }) => at),
]

export function Mails() {
  const { kind = 'kept' } = useSearch({ strict: false }) as { kind?: MailKind }
  const navigate = useNavigate()
  const choose = (id: string) => void navigate({ to: '/mail', search: { kind: id } as never, replace: true })
  return (
    <Page title={words.title} lead={words.lead}>
      <Tabs
        label={words.title}
        value={kind}
        onChange={choose}
        tabs={[
          { id: 'kept', label: words.kept, content: <List kind="kept" /> },
          { id: 'captured', label: words.captured, content: <List kind="captured" /> },
        ]}
      />
    </Page>
  )
}

function List({ kind }: { kind: MailKind }) {
  const query = useMails(kind)
  return (
    <>
      <p className="mb-4 max-w-3xl text-balance text-muted">
        {kind === 'kept' ? words.keptLead : words.capturedLead}
      </p>
      <PagedTable
        query={query}
        rowsOf={({ mails }) => mails}
        label={words.title}
        columns={columns}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/mail/${kind}/${id}`}
        empty={<None kind={kind} isFilled={query.data?.pages[0]?.isFilled ?? true} />}
      />
    </>
  )
}

function None({ kind, isFilled }: { kind: MailKind; isFilled: boolean }) {
  if (kind === 'kept')
    return (
      <Empty icon={MailQuestion} title={words.keptNone}>
        {words.keptNoneWhat}
      </Empty>
    )
  return (
    <Empty icon={PackageOpen} title={isFilled ? words.capturedNone : words.capturedOff}>
      {isFilled ? words.capturedNoneWhat : words.capturedOffWhat}
    </Empty>
  )
}
