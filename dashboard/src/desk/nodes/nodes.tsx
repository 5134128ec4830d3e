// The nodes, their common backlog, and the health of this node.

import { Badge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { type Column, Table } from '../../parts/list/table.tsx'
import { timeColumn } from '../../parts/list/time-column.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { desk } from '../../texts/desk.ts'
import type { Answer } from '../client.ts'
import { useNodes } from '../queries.ts'
import { BacklogCard } from './backlog.tsx'
import { HealthCard } from './health.tsx'

const { nodes: words } = desk
type Row = Answer<'/nodes'>['nodes'][number]

const columns: readonly Column<Row>[] = [
  {
    id: 'node',
    header: words.node,
    className: 'w-32',
    cell: ({ id, isAlive }) => (
      <span className="flex items-center gap-2.5">
        <span className="numbers font-medium">{id}</span>
        {isAlive ? (
          <Badge tone="good">{words.alive}</Badge>
        ) : (
          <Badge tone="bad" title={words.lostWhat}>
            {words.lost}
          </Badge>
        )}
      </span>
    ),
  },
  {
    id: 'roles',
    header: words.roles,
    cell: ({ roles }) => (roles.length > 0 ? roles.join(', ') : words.unknownRoles),
  },
  {
    id: 'addresses',
    header: words.addresses,
    cell: (row) => <Addresses of={row} />,
  },
  { id: 'queues', header: words.queues, cell: ({ queues }) => queues, align: 'right' },
  { id: 'version', header: words.version, cell: ({ version }) => version ?? desk.none },
  timeColumn(words.started, ({ startedAt }) => startedAt),
]

function Addresses({ of: { smtp, capture, operator } }: { of: Row }) {
  const named = [
    [words.smtp, smtp],
    [words.capture, capture],
    [words.operator, operator],
  ].filter(([, address]) => address)
  return (
    <span className="grid">
      {named.map(([name, address]) => (
        <span key={name}>
          <span className="text-faint">{name}</span> <code>{address}</code>
        </span>
      ))}
    </span>
  )
}

export function Nodes() {
  return (
    <Page title={words.title}>
      <Loaded query={useNodes()}>
        {({ nodes, backlog, connections }) => (
          <div className="grid gap-5">
            <Card title={words.nodes} flush>
              <Table label={words.nodes} columns={columns} rows={nodes} keyOf={({ id }) => String(id)} />
            </Card>
            <BacklogCard backlog={backlog} connections={connections} />
            <HealthCard />
          </div>
        )}
      </Loaded>
    </Page>
  )
}
