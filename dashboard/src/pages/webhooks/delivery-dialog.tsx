// One delivery: its event, the request, the answer and its meaning, and a button to call again.
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { ChevronDown, ChevronUp, RotateCcw } from 'lucide-react'
import { api, read } from '../../api/client.ts'
import type { Tone } from '../../parts/badge.tsx'
import { writtenBytes } from '../../parts/bytes.ts'
import { classes } from '../../parts/classes.ts'
import { CodeBlock } from '../../parts/code-block.tsx'
import { DefinitionList } from '../../parts/definition-list.tsx'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button, IconButton } from '../../parts/form/button.tsx'
import { Dialog } from '../../parts/form/dialog.tsx'
import { Time } from '../../parts/time.tsx'
import { toast } from '../../parts/toasts.ts'
import { useMay } from '../../shell/session.ts'
import { eventKinds, webhooks } from '../../texts/webhooks.ts'
import { DeliveryBadge, toneOfDelivery } from './delivery-badge.tsx'
import { meaningOf } from './meaning.ts'
import type { Delivery } from './queries.ts'

interface DeliveryDialogProps {
  delivery: Delivery
  /** The list that contains this delivery. */
  rows: readonly Delivery[]
  onMove: (id: string) => void
  onClose: () => void
}

export function DeliveryDialog({ delivery, rows, onMove, onClose }: DeliveryDialogProps) {
  const replay = useReplay(delivery)
  const mayChange = useMay('change')
  const footer = (
    <>
      <Neighbours at={rows.indexOf(delivery)} rows={rows} onMove={onMove} />
      {mayChange && (
        <Button icon={RotateCcw} busy={replay.isPending} onClick={() => replay.mutate()}>
          {webhooks.replay}
        </Button>
      )}
    </>
  )
  return (
    <Dialog
      open
      onClose={onClose}
      title={delivery.type}
      lead={eventKinds[delivery.type]}
      width="large"
      footer={footer}
    >
      <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
        <Meaning delivery={delivery} />
        <Facts delivery={delivery} />
        <Sent delivery={delivery} />
        <Answered delivery={delivery} />
        <p className="text-sm text-faint">{webhooks.replayWhat}</p>
        <ErrorNote error={replay.error} />
      </div>
    </Dialog>
  )
}

function useReplay({ id, webhookId }: Delivery) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: () =>
      read(
        api.POST('/v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay', {
          params: { path: { webhookId, deliveryId: id } },
        }),
      ),
    onSuccess: async () => {
      toast(webhooks.replayed)
      await queries.invalidateQueries({ queryKey: ['webhooks', 'deliveries', webhookId] })
    },
  })
}

/** The API document marks these as optional, but all of them are always present. */
type CallRequest = Required<NonNullable<Delivery['request']>>

interface NeighboursProps {
  at: number
  rows: readonly Delivery[]
  onMove: (id: string) => void
}

function Neighbours({ at, rows, onMove }: NeighboursProps) {
  const [newer, older] = [rows[at - 1], rows[at + 1]]
  return (
    <div className="mr-auto flex gap-1">
      <IconButton
        icon={ChevronUp}
        label={webhooks.previousDelivery}
        disabled={!newer}
        onClick={() => newer && onMove(newer.id)}
      />
      <IconButton
        icon={ChevronDown}
        label={webhooks.nextDelivery}
        disabled={!older}
        onClick={() => older && onMove(older.id)}
      />
    </div>
  )
}

const looks: Record<Tone, string> = {
  wait: 'bg-wait-soft text-wait',
  note: 'bg-note-soft text-note',
  accent: 'bg-accent-soft text-accent',
  good: 'bg-good-soft text-good',
  bad: 'bg-bad-soft text-bad',
  idle: 'bg-idle-soft text-idle',
}

function Meaning({ delivery }: { delivery: Delivery }) {
  const { status, error } = delivery
  return (
    <div className={classes('rounded-md px-4 py-3', looks[toneOfDelivery(delivery)])}>
      {error && <p className="font-medium first-letter:uppercase">{error}.</p>}
      {meaningOf(delivery).map((sentence) => (
        <p key={sentence} className="text-sm text-balance">
          {sentence}
        </p>
      ))}
      {status === 'pending' && <p className="mt-1.5 text-sm text-balance">{webhooks.retries}</p>}
    </div>
  )
}

function Facts({ delivery }: { delivery: Delivery }) {
  const { status, eventId, attempts, lastAttemptAt, nextAttemptAt } = delivery
  return (
    <DefinitionList
      items={[
        [webhooks.columns.state, <DeliveryBadge key="state" delivery={delivery} />],
        [
          webhooks.event,
          <span key="event" title={webhooks.eventIdHint}>
            <code className="break-all">{eventId}</code>
          </span>,
        ],
        [webhooks.tries, String(attempts)],
        ...(lastAttemptAt ? [[webhooks.lastTry, <Time key="last" value={lastAttemptAt} />] as const] : []),
        ...(status === 'pending'
          ? [
              [
                webhooks.next,
                nextAttemptAt ? <Time key="next" value={nextAttemptAt} /> : webhooks.soon,
              ] as const,
            ]
          : []),
      ]}
    />
  )
}

function Sent({ delivery }: { delivery: Delivery }) {
  const request = delivery.request as CallRequest | null
  if (!request) return null
  return (
    <section>
      <h3 className="mb-2 text-sm font-medium">{webhooks.sent}</h3>
      <DefinitionList
        items={[
          [
            webhooks.sentTo,
            <code key="url" className="break-all">
              {`POST ${request.url}`}
            </code>,
          ],
          [webhooks.sentAt, <Time key="at" value={request.timestamp} />],
          [webhooks.sentSize, writtenBytes(request.sizeBytes)],
        ]}
      />
      <p className="mt-1.5 text-sm text-balance text-faint">{webhooks.sentBodyWhy}</p>
    </section>
  )
}

function Answered({ delivery: { responseStatus, responseBody } }: { delivery: Delivery }) {
  if (responseStatus === null) return null
  return (
    <section>
      <h3 className="mb-2 text-sm font-medium">
        {webhooks.body}: <span className="numbers">{responseStatus}</span>
      </h3>
      {responseBody ? (
        <>
          <CodeBlock code={responseBody} label={webhooks.body} />
          <p className="mt-1.5 text-sm text-faint">{webhooks.bodyCut}</p>
        </>
      ) : (
        <p className="text-sm text-muted">{webhooks.bodyEmpty}</p>
      )}
    </section>
  )
}
