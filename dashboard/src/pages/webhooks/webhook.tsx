// One endpoint: its settings, the actions on it, and every call of the last 30 days.
import { useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { TriangleAlert } from 'lucide-react'
import { StateBadge } from '../../parts/badge.tsx'
import { Card } from '../../parts/card.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Page } from '../../parts/page.tsx'
import { Time } from '../../parts/time.tsx'
import { webhooks } from '../../texts/webhooks.ts'
import { Deliveries } from './deliveries.tsx'
import { type Webhook, webhookQuery } from './queries.ts'
import { WebhookActions } from './webhook-actions.tsx'

const crumbs = [{ label: webhooks.title, to: '/webhooks' }]

export function WebhookPage() {
  const { webhookId = '' } = useParams({ strict: false })
  const query = useQuery(webhookQuery(webhookId))
  const webhook = query.data
  return (
    <Page
      title={webhook ? titleOf(webhook) : webhooks.about}
      badge={webhook && <StateBadge state={webhook.status} />}
      crumbs={crumbs}
      actions={webhook && <WebhookActions webhook={webhook} />}
    >
      <Loaded query={query}>
        {(loaded) => (
          <div className="grid gap-6">
            {loaded.status === 'disabled' && <Disabled />}
            <About webhook={loaded} />
            <Deliveries webhookId={loaded.id} />
          </div>
        )}
      </Loaded>
    </Page>
  )
}

/** Two endpoints may be on one host, so the path is part of the title. */
function titleOf({ url, description }: Webhook): string {
  return description ?? url.replace(/^https?:\/\//, '')
}

function Disabled() {
  return (
    <div className="flex gap-2.5 rounded-md bg-wait-soft px-4 py-3 text-wait">
      <TriangleAlert size={16} className="mt-[3px] shrink-0" aria-hidden />
      <div>
        <p className="font-medium">{webhooks.disabledNote}</p>
        <p className="text-sm text-balance">{webhooks.disabledWhy}</p>
      </div>
    </div>
  )
}

function About({ webhook: { id, url, eventTypes, createdAt, updatedAt } }: { webhook: Webhook }) {
  return (
    <Card>
      <DefinitionList
        items={[
          [webhooks.url, <Copied key="url" text={url} />],
          [webhooks.told, eventTypes ? <Kinds key="kinds" types={eventTypes} /> : webhooks.all],
          [webhooks.id, <Copied key="id" text={id} />],
          [webhooks.createdAt, <Time key="created" value={createdAt} />],
          [webhooks.changedAt, <Time key="changed" value={updatedAt} />],
        ]}
      />
    </Card>
  )
}

function Copied({ text }: { text: string }) {
  return (
    <span className="flex items-start gap-1">
      <code className="min-w-0 break-all">{text}</code>
      <span className="-my-1">
        <CopyButton text={text} what={text} />
      </span>
    </span>
  )
}

function Kinds({ types }: { types: readonly string[] }) {
  return (
    <ul className="flex flex-wrap gap-1.5">
      {types.map((type) => (
        <li key={type} className="rounded-sm bg-idle-soft px-1.5 text-sm text-muted">
          <code>{type}</code>
        </li>
      ))}
    </ul>
  )
}
