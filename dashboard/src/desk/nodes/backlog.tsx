// The backlog of each part of the service, with the age of its oldest entry.
import { Card } from '../../parts/card.tsx'
import { Figures } from '../../parts/figures.tsx'
import { Time } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Answer } from '../client.ts'

const { nodes: words } = desk

export function BacklogCard({ backlog, connections }: Pick<Answer<'/nodes'>, 'backlog' | 'connections'>) {
  const { due, spooled, webhookCalls, oldestUnindexedAt } = backlog
  return (
    <Card title={words.backlog} lead={words.backlogLead}>
      <Figures
        columns="sm:grid-cols-3 lg:grid-cols-5"
        figures={[
          [words.due, due, due > 0 && oldest(backlog.oldestAcceptedAt)],
          [words.later, backlog.later],
          [words.onWire, backlog.onWire],
          [words.spooled, spooled, spooled > 0 && oldest(backlog.oldestReceivedAt)],
          [words.scans, backlog.scans],
          [words.webhooks, webhookCalls, webhookCalls > 0 && oldest(backlog.oldestWebhookCallAt)],
          [words.unfolded, backlog.unfolded],
          [words.search, oldestUnindexedAt === null && words.upToDate, oldest(oldestUnindexedAt)],
          [words.connections, words.of(connections.open, connections.max)],
        ]}
      />
    </Card>
  )
}

const oldest = (at: string | null) =>
  at && (
    <span className="block">
      {words.oldest} <Time value={at} />
    </span>
  )
