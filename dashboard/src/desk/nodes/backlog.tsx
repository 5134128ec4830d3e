// What waits in each part of the service, and for how long.
import { Card } from '../../parts/card.tsx'
import { Time } from '../../parts/time.tsx'
import { desk } from '../../texts/desk.ts'
import type { Answer } from '../client.ts'

type NodeList = Answer<'/nodes'>

const { nodes: words } = desk

export function BacklogCard({ backlog, connections }: Pick<NodeList, 'backlog' | 'connections'>) {
  return (
    <Card title={words.backlog} lead={words.backlogLead}>
      <dl className="grid grid-cols-2 gap-x-6 gap-y-5 sm:grid-cols-3 lg:grid-cols-5">
        <Figure name={words.due} value={backlog.due} since={backlog.oldestAcceptedAt} />
        <Figure name={words.later} value={backlog.later} />
        <Figure name={words.onWire} value={backlog.onWire} />
        <Figure name={words.spooled} value={backlog.spooled} since={backlog.oldestReceivedAt} />
        <Figure name={words.scans} value={backlog.scans} />
        <Figure name={words.webhooks} value={backlog.webhookCalls} since={backlog.oldestWebhookCallAt} />
        <Figure name={words.unfolded} value={backlog.unfolded} />
        <Search since={backlog.oldestUnindexedAt} />
        <div>
          <dt className="text-sm text-faint">{words.connections}</dt>
          <dd className="numbers text-lg font-semibold">{words.of(connections.open, connections.max)}</dd>
        </div>
      </dl>
    </Card>
  )
}

function Figure({ name, value, since }: { name: string; value: number; since?: string | null }) {
  return (
    <div>
      <dt className="text-sm text-faint">{name}</dt>
      <dd className="numbers text-lg font-semibold">
        {value.toLocaleString('en')}
        {since && value > 0 && <Oldest at={since} />}
      </dd>
    </div>
  )
}

function Oldest({ at }: { at: string }) {
  return (
    <span className="block text-sm font-normal text-muted">
      {words.oldest} <Time value={at} />
    </span>
  )
}

function Search({ since }: { since: string | null }) {
  return (
    <div>
      <dt className="text-sm text-faint">{words.search}</dt>
      <dd>
        {since ? <Oldest at={since} /> : <span className="text-lg font-semibold">{words.upToDate}</span>}
      </dd>
    </div>
  )
}
