// All destination queues that have mail, a pause or a fault.
import { Inbox } from 'lucide-react'
import { Card } from '../../parts/card.tsx'
import { Empty } from '../../parts/empty.tsx'
import { type Column, Table } from '../../parts/list/table.tsx'
import { TwoLines } from '../../parts/list/two-lines.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Answer } from '../client.ts'
import { useQueues } from '../queries.ts'
import { QueueState } from './queue-state.tsx'

const { queues: words } = desk
type Row = Answer<'/queues'>['queues'][number]

const columns: readonly Column<Row>[] = [
  {
    id: 'queue',
    header: words.queue,
    className: 'min-w-36',
    cell: ({ key }) => <TwoLines first={key} second={words.special[key]} />,
  },
  {
    id: 'state',
    header: words.state,
    aside: true,
    cell: (row) => <QueueState queue={row} />,
    className: 'w-32',
  },
  {
    id: 'waiting',
    header: words.waiting,
    align: 'right',
    className: 'w-24',
    cell: ({ waiting }) => waiting.toLocaleString('en'),
  },
  {
    id: 'wire',
    header: words.onWire,
    align: 'right',
    className: 'w-28',
    cell: ({ onWire }) => (
      <span className={onWire === 0 ? 'text-faint' : ''}>{onWire.toLocaleString('en')}</span>
    ),
  },
  { id: 'next', header: words.next, className: 'w-28', cell: (row) => <Next of={row} /> },
  {
    id: 'fault',
    header: words.fault,
    cell: ({ lastFault }) => lastFault && <span className="line-clamp-2 text-muted">{lastFault}</span>,
  },
]

function Next({ of: { state, notBefore, oldestDueAt } }: { of: Row }) {
  const at = notBefore ?? oldestDueAt
  if (state === 'paused' || !at) return <span className="text-faint">{desk.none}</span>
  return <Time value={at} className="whitespace-nowrap" />
}

export function Queues() {
  return (
    <Page title={words.title} lead={words.lead}>
      <Loaded query={useQueues()}>
        {({ queues }) =>
          queues.length === 0 ? (
            <Empty icon={Inbox} title={words.none}>
              {words.noneWhat}
            </Empty>
          ) : (
            <Card flush>
              <Table
                label={words.title}
                columns={columns}
                rows={queues}
                keyOf={({ key }) => key}
                linkOf={({ key }) => `/queues/${encodeURIComponent(key)}`}
              />
            </Card>
          )
        }
      </Loaded>
    </Page>
  )
}
