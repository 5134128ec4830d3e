// The complaints: the complaining recipient, the message, and the provider's report.
import { useInfiniteQuery } from '@tanstack/react-query'
import { Flag } from 'lucide-react'
import { Badge } from '../../parts/badge.tsx'
import { Empty } from '../../parts/empty.tsx'
import { PagedTable } from '../../parts/list/paged-table.tsx'
import type { Column } from '../../parts/list/table.tsx'
import { timeColumn } from '../../parts/list/time-column.tsx'
import { Page } from '../../parts/page.tsx'
import { suppressions } from '../../texts/suppressions.ts'
import { ExportButton } from './export-button.tsx'
import { Sides } from './sides.tsx'
import { type Complaint, complaintsQuery, readComplaints } from './suppression-queries.ts'

export function Complaints() {
  const query = useInfiniteQuery(complaintsQuery)
  const hasRows = query.data?.pages.some((page) => page.complaints.length > 0)
  return (
    <Page
      title={suppressions.complaints}
      lead={suppressions.complaintsLead}
      actions={hasRows && <ExportComplaints />}
    >
      <Sides />
      <PagedTable
        query={query}
        rowsOf={(page) => page.complaints}
        label={suppressions.complaintList}
        columns={columns}
        keyOf={({ id }) => id}
        linkOf={({ submissionId }) => submissionId && `/sending/${submissionId}`}
        empty={
          <Empty icon={Flag} title={suppressions.noComplaints}>
            {suppressions.noComplaintsWhat}
          </Empty>
        }
      />
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

const columns: Column<Complaint>[] = [
  {
    id: 'email',
    header: suppressions.email,
    className: 'max-w-0 w-1/2',
    cell: ({ email }) => <span className="block truncate font-medium">{email}</span>,
  },
  {
    id: 'type',
    header: suppressions.kind,
    aside: true,
    cell: ({ feedbackType }) => (
      <Badge tone={feedbackType === 'not-spam' ? 'good' : 'bad'}>
        {suppressions.feedbackTypes[feedbackType]}
      </Badge>
    ),
  },
  { id: 'by', header: suppressions.reportedBy, cell: ({ reportedBy }) => reportedBy },
  timeColumn(suppressions.arrived, ({ arrivedAt }) => arrivedAt),
]
