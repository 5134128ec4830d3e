// The state of a delivery in one word, calm before the first call and a warning before a retry.
import { Badge, StateBadge, type Tone, toneOf } from '../../parts/badge.tsx'
import { webhooks } from '../../texts/webhooks.ts'
import type { Delivery } from './queries.ts'

export function toneOfDelivery({ status, attempts }: Delivery): Tone {
  return status === 'pending' && attempts > 0 ? 'wait' : toneOf(status)
}

export function DeliveryBadge({ delivery }: { delivery: Delivery }) {
  const { status, attempts } = delivery
  if (status === 'pending' && attempts > 0) return <Badge tone="wait">{webhooks.retrying}</Badge>
  return <StateBadge state={status} />
}
