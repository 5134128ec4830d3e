// The latest sends, each with a link to its timeline.
import type { Schemas } from '../../api/client.ts'
import { StateBadge } from '../../parts/badge.tsx'
import { type Column, Table } from '../../parts/list/table.tsx'
import { Time } from '../../parts/time.tsx'
import { life } from '../../texts/life.ts'
import { overview } from '../../texts/overview.ts'
import { stateOf } from '../sending/submission-state.ts'

type Submission = Schemas['Submission']
const names = overview.columns

const columns: Column<Submission>[] = [
  {
    id: 'subject',
    header: names.subject,
    cell: ({ subject, recipients }) => (
      <>
        <span className="block truncate font-medium">{subject || life.erasedSubject}</span>
        <span className="block truncate text-faint">
          {overview.to(recipients[0]?.email ?? '', recipients.length - 1)}
        </span>
      </>
    ),
    className: 'max-w-0 w-full',
  },
  {
    id: 'state',
    header: names.state,
    aside: true,
    cell: (submission) => <StateBadge state={stateOf(submission)} />,
  },
  {
    id: 'at',
    header: names.at,
    cell: ({ createdAt }) => <Time value={createdAt} className="whitespace-nowrap text-faint" />,
    align: 'right',
  },
]

export function LatestSends({ submissions }: { submissions: readonly Submission[] }) {
  if (submissions.length === 0) return <p className="px-5 py-4 text-muted">{overview.latestNone}</p>
  return (
    <Table
      label={overview.latest}
      columns={columns}
      rows={submissions}
      keyOf={({ id }) => id}
      linkOf={({ id }) => `/sending/${id}`}
    />
  )
}
