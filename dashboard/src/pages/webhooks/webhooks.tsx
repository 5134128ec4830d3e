// The endpoints: their addresses, their events, and the result of the last call.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Plus, Webhook as WebhookIcon } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { StateBadge } from '../../parts/badge.tsx'
import { CodeBlock } from '../../parts/code-block.tsx'
import { Empty } from '../../parts/empty.tsx'
import { Button } from '../../parts/form/button.tsx'
import { PagedTable } from '../../parts/list/paged-table.tsx'
import type { Column } from '../../parts/list/table.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
import { useMay } from '../../shell/session.ts'
import { webhooks } from '../../texts/webhooks.ts'
import { CreateWebhook } from './create-webhook.tsx'
import { DeliveryBadge } from './delivery-badge.tsx'
import { lastDeliveryQuery, type Webhook, webhooksQuery } from './queries.ts'

export function Webhooks() {
  const [isCreating, setIsCreating] = useState(false)
  const query = useInfiniteQuery(webhooksQuery)
  const hasRows = query.data?.pages.some((page) => page.webhooks.length > 0)
  const mayChange = useMay('change')
  const create = mayChange && (
    <Button variant="primary" icon={Plus} onClick={() => setIsCreating(true)}>
      {webhooks.create}
    </Button>
  )
  return (
    <Page title={webhooks.title} lead={webhooks.lead} actions={hasRows && create}>
      <PagedTable
        query={query}
        rowsOf={(page) => page.webhooks}
        label={webhooks.table}
        columns={columns}
        keyOf={({ id }) => id}
        linkOf={({ id }) => `/webhooks/${id}`}
        empty={<FirstEndpoint action={create} />}
      />
      {isCreating && <CreateWebhook onClose={() => setIsCreating(false)} />}
    </Page>
  )
}

const columns: Column<Webhook>[] = [
  {
    id: 'url',
    header: webhooks.columns.url,
    cell: (row) => <Address webhook={row} />,
    className: 'max-w-0 w-full',
  },
  {
    id: 'events',
    header: webhooks.columns.events,
    className: 'whitespace-nowrap',
    cell: ({ eventTypes }) => (
      <span title={eventTypes?.join(', ')}>
        {eventTypes ? webhooks.kinds(eventTypes.length) : webhooks.everything}
      </span>
    ),
  },
  {
    id: 'last',
    header: webhooks.columns.last,
    cell: (row) => <LastCall webhook={row} />,
  },
]

function Address({ webhook: { url, description } }: { webhook: Webhook }) {
  return (
    <span className="block min-w-0">
      <span className="block truncate font-medium">{url}</span>
      {description && <span className="block truncate text-faint">{description}</span>}
    </span>
  )
}

/** Shows the result of the last call, or that the endpoint gets no calls. An active endpoint may fail every call. */
function LastCall({ webhook: { id, status } }: { webhook: Webhook }) {
  const { data: last } = useQuery(lastDeliveryQuery(id))
  if (status === 'disabled') return <StateBadge state={status} />
  if (last === undefined) return <span className="block w-44" />
  if (last === null) return <span className="block w-44 text-faint">{webhooks.neverCalled}</span>
  return (
    <span className="flex w-44 items-center gap-2 whitespace-nowrap">
      <DeliveryBadge delivery={last} />
      <Time value={last.lastAttemptAt ?? last.createdAt} className="text-muted" />
    </span>
  )
}

function FirstEndpoint({ action }: { action: ReactNode }) {
  const example = `curl -X POST "${location.origin}/v1/webhooks" \\
  -H "x-api-key: $POSTHORN_KEY" \\
  -H "content-type: application/json" \\
  -d '{"url": "https://app.example.com/hooks/mail",
       "eventTypes": ["message.received"]}'`
  return (
    <Empty
      icon={WebhookIcon}
      title={webhooks.empty}
      action={action}
      code={<CodeBlock code={example} label={webhooks.asProgram} />}
    >
      {webhooks.emptyWhat}
    </Empty>
  )
}
