// The calls of an endpoint as a list of any length, each opened in a dialog.
import { useInfiniteQuery } from '@tanstack/react-query'
import { RefreshCw, Send } from 'lucide-react'
import { useState } from 'react'
import { Card } from '../../parts/card.tsx'
import { Empty } from '../../parts/empty.tsx'
import { IconButton } from '../../parts/form/button.tsx'
import { VirtualList } from '../../parts/list/virtual-list.tsx'
import { Time } from '../../parts/time.tsx'
import { webhooks } from '../../texts/webhooks.ts'
import { DeliveryBadge } from './delivery-badge.tsx'
import { DeliveryDialog } from './delivery-dialog.tsx'
import { type Delivery, deliveriesQuery } from './queries.ts'

const rowPx = 52
const mostRows = 10

export function Deliveries({ webhookId }: { webhookId: string }) {
  const query = useInfiniteQuery(deliveriesQuery(webhookId))
  const [openId, setOpenId] = useState<string | null>(null)
  const rows = query.data?.pages.flatMap(({ deliveries }) => deliveries) ?? []
  const open = rows.find(({ id }) => id === openId)
  const refresh = (
    <IconButton
      size="small"
      icon={RefreshCw}
      label={webhooks.refresh}
      disabled={query.isRefetching}
      onClick={() => void query.refetch()}
    />
  )
  return (
    <Card title={webhooks.deliveries} lead={webhooks.deliveriesLead} actions={refresh} flush>
      <div style={{ height: rows.length ? Math.min(rows.length, mostRows) * rowPx : undefined }}>
        <VirtualList
          label={webhooks.deliveries}
          query={query}
          rows={rows}
          keyOf={({ id }) => id}
          rowPx={rowPx}
          empty={
            <Empty icon={Send} title={webhooks.noDeliveries}>
              {webhooks.noDeliveriesWhat}
            </Empty>
          }
        >
          {(row) => <DeliveryRow delivery={row} onOpen={() => setOpenId(row.id)} />}
        </VirtualList>
      </div>
      {open && (
        <DeliveryDialog delivery={open} rows={rows} onMove={setOpenId} onClose={() => setOpenId(null)} />
      )}
    </Card>
  )
}

function DeliveryRow({ delivery, onOpen }: { delivery: Delivery; onOpen: () => void }) {
  const { type, attempts, responseStatus, createdAt } = delivery
  return (
    <button
      type="button"
      data-row
      onClick={onOpen}
      className="grid h-full w-full grid-cols-[minmax(0,1fr)_auto] items-center gap-3 border-b px-4 text-left text-sm -outline-offset-2 hover:bg-hover sm:grid-cols-[104px_minmax(0,1fr)_64px_150px_104px] sm:px-5"
    >
      <span className="hidden sm:block">
        <DeliveryBadge delivery={delivery} />
      </span>
      <span className="min-w-0">
        <code className="block truncate text-ink">{type}</code>
        <span className="block truncate text-faint sm:hidden">{webhooks.attempts(attempts)}</span>
      </span>
      <span className="numbers hidden text-muted sm:block">{responseStatus ?? ''}</span>
      <span className="hidden truncate text-muted sm:block">{webhooks.attempts(attempts)}</span>
      <span className="grid justify-items-end gap-0.5">
        <span className="sm:hidden">
          <DeliveryBadge delivery={delivery} />
        </span>
        <Time value={createdAt} className="text-faint" />
      </span>
    </button>
  )
}
