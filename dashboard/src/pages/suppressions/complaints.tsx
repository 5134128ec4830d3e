// The complaints: the complaining recipient, the message, and the provider's report.
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Flag } from 'lucide-react'
import { Badge } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
import { suppressions } from '../../texts/suppressions.ts'
import { ExportButton } from './export-button.tsx'
import { Sides } from './sides.tsx'
import { type Complaint, complaintsQuery, readComplaints } from './suppression-queries.ts'

const rowPx = 60

export function Complaints() {
  const query = useInfiniteQuery(complaintsQuery)
  const rows = query.data?.pages.flatMap((page) => page.complaints) ?? []
  return (
    <Page
      title={suppressions.complaints}
      lead={suppressions.complaintsLead}
      actions={rows.length > 0 && <ExportComplaints />}
    >
      <Sides />
      <div className="overflow-clip rounded-lg border bg-surface">
        <VirtualList
          label={suppressions.complaintList}
          query={query}
          rows={rows}
          keyOf={({ id }) => id}
          rowPx={rowPx}
          className="max-h-[max(420px,calc(100dvh-260px))] overflow-y-auto"
          empty={
            <Empty icon={Flag} title={suppressions.noComplaints}>
              {suppressions.noComplaintsWhat}
            </Empty>
          }
        >
          {(complaint) => <ComplaintRow complaint={complaint} />}
        </VirtualList>
      </div>
    </Page>
  )
}

function ExportComplaints() {
  return (
    <ExportButton
      filename="complaints.csv"
      columns={['email', 'feedbackType', 'reportedBy', 'userAgent', 'submissionId', 'messageId', 'arrivedAt']}
      fieldsOf={(complaint: Complaint) => [
        ...[complaint.email, complaint.feedbackType, complaint.reportedBy, complaint.userAgent],
        ...[complaint.submissionId, complaint.messageId, complaint.arrivedAt],
      ]}
      readPage={async (cursor) => {
        const { complaints: rows, nextCursor } = await readComplaints(cursor)
        return { rows, nextCursor }
      }}
    />
  )
}

const look =
  'grid h-full grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 border-b px-4 -outline-offset-2 hover:bg-hover sm:grid-cols-[minmax(0,1.4fr)_minmax(0,1fr)_minmax(0,1fr)_92px] sm:px-5'

function ComplaintRow({ complaint }: { complaint: Complaint }) {
  const { submissionId, email, feedbackType, reportedBy, arrivedAt } = complaint
  const cells = (
    <>
      <span className="truncate font-medium">{email}</span>
      <span className="flex">
        <Badge tone={feedbackType === 'not-spam' ? 'good' : 'bad'}>
          {suppressions.feedbackTypes[feedbackType]}
        </Badge>
      </span>
      <span className="hidden truncate text-muted sm:block">{reportedBy}</span>
      <Time value={arrivedAt} className="hidden text-right text-sm text-faint sm:block" />
    </>
  )
  if (submissionId === null)
    return (
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keys j and k focus rows
      <div data-row tabIndex={0} className={look}>
        {cells}
      </div>
    )
  return (
    <Link to="/sending/$submissionId" params={{ submissionId }} data-row className={look}>
      {cells}
    </Link>
  )
}
