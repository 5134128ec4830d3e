// The deliveries that wait in a queue, one row per recipient.
import { Link } from '@tanstack/react-router'
import { Badge, StateBadge } from '../../parts/badge.tsx'
import { Button } from '../../parts/form/button.tsx'
import { CardTable } from '../../parts/list/card-table.tsx'
import type { Column } from '../../parts/list/table.tsx'
import { TwoLines } from '../../parts/list/two-lines.tsx'
import { Conversation } from '../../parts/mail/conversation.tsx'
import { Time } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Queue } from '../client.ts'

const { queue: words } = desk
type Row = Queue['deliveries'][number]

const columns: readonly Column<Row>[] = [
  {
    id: 'recipient',
    header: words.recipient,
    cell: ({ email, subject }) => <TwoLines first={email} second={subject} />,
  },
  {
    id: 'organization',
    header: words.organization,
    cell: ({ organizationId, organizationName, sender }) => (
      <TwoLines
        first={
          <Link to={`/organizations/${organizationId}`} className="rounded-sm font-normal hover:underline">
            {organizationName}
          </Link>
        }
        second={sender}
      />
    ),
  },
  {
    id: 'state',
    header: desk.queues.state,
    aside: true,
    cell: (row) => <State of={row} />,
    className: 'w-24',
  },
  {
    id: 'attempts',
    header: words.attempts,
    cell: ({ attempts }) => attempts,
    align: 'right',
  },
  {
    id: 'due',
    header: words.due,
    className: 'w-24',
    cell: ({ dueAt }) => <Time value={dueAt} className="whitespace-nowrap" />,
  },
  {
    id: 'reply',
    header: words.reply,
    cell: ({ response, conversation }) =>
      (response || conversation) && (
        <div className="max-w-xs">
          <span className="line-clamp-2 break-words text-muted" title={response ?? ''}>
            {response}
          </span>
          {conversation && <Conversation conversation={conversation} />}
        </div>
      ),
  },
]

function State({ of: { isHeld, status } }: { of: Row }) {
  if (!isHeld) return <StateBadge state={status} />
  return (
    <Badge tone="bad" title={words.heldWhat}>
      {words.held}
    </Badge>
  )
}

interface DeliveriesProps {
  queue: Queue
  offset: number
  onOffset: (offset: number) => void
}

export function Deliveries({ queue: { deliveries, nextOffset }, offset, onOffset }: DeliveriesProps) {
  return (
    <CardTable
      label={words.deliveries}
      none={words.deliveriesNone}
      columns={columns}
      rows={deliveries}
      keyOf={({ submissionId, position }) => `${submissionId} ${position}`}
    >
      {(offset > 0 || nextOffset !== null) && (
        <footer className="flex items-center justify-between gap-3 border-t px-4 py-2.5 sm:px-5">
          <span className="numbers text-sm text-faint">
            {words.range(offset + 1, offset + deliveries.length)}
          </span>
          <span className="flex gap-2">
            <Button size="small" disabled={offset === 0} onClick={() => onOffset(0)}>
              {words.earlier}
            </Button>
            <Button size="small" disabled={nextOffset === null} onClick={() => onOffset(nextOffset ?? 0)}>
              {words.later}
            </Button>
          </span>
        </footer>
      )}
    </CardTable>
  )
}
