// What the operator can do about a queue.
import { CirclePause, CirclePlay, Ellipsis, FastForward, XOctagon } from 'lucide-react'
import { useState } from 'react'
import type { Queue } from '../../../../src/operator/desk/schemas/queue.ts'
import { Button, IconButton } from '../../parts/button.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { wordsOf } from '../../parts/error-note.tsx'
import { Menu } from '../../parts/menu.tsx'
import { toast } from '../../parts/toasts.ts'
import { desk } from '../../texts/desk.ts'
import { ask } from '../client.ts'
import { useDeed } from '../deed.ts'

const { queue: words } = desk

function pathOf(key: string, verb: string): string {
  return `/queues/${encodeURIComponent(key)}/${verb}`
}

export function QueueDeeds({ queue }: { queue: Queue }) {
  const [open, setOpen] = useState<'flush' | 'cancel' | null>(null)
  const close = () => setOpen(null)
  return (
    <>
      <PauseOrResume queue={queue} />
      <Menu
        trigger={<IconButton label={desk.organization.more} icon={Ellipsis} />}
        groups={[
          [{ label: words.flush, icon: FastForward, onSelect: () => setOpen('flush') }],
          [{ label: words.cancel, icon: XOctagon, danger: true, onSelect: () => setOpen('cancel') }],
        ]}
      />
      {open === 'flush' && <Flush queue={queue} onClose={close} />}
      {open === 'cancel' && <Cancel queue={queue} onClose={close} />}
    </>
  )
}

function PauseOrResume({ queue: { key, state } }: { queue: Queue }) {
  const verb = state === 'paused' ? 'resume' : 'pause'
  const deed = useDeed(
    () => ask(pathOf(key, verb), { method: 'POST' }),
    () => (verb === 'pause' ? words.paused(key) : words.resumed(key)),
  )
  const press = () => deed.mutate(undefined, { onError: (error) => toast(wordsOf(error).title, 'bad') })
  return verb === 'pause' ? (
    <Button icon={CirclePause} busy={deed.isPending} onClick={press}>
      {words.pause}
    </Button>
  ) : (
    <Button variant="primary" icon={CirclePlay} busy={deed.isPending} onClick={press}>
      {words.resume}
    </Button>
  )
}

interface DeedProps {
  queue: Queue
  onClose: () => void
}

function Flush({ queue: { key }, onClose }: DeedProps) {
  const flush = useDeed(
    () => ask<{ moved: number }>(pathOf(key, 'flush'), { method: 'POST' }),
    ({ moved }) => words.flushed(moved),
    onClose,
  )
  return (
    <Confirm
      open
      onClose={onClose}
      title={words.flushTitle(key)}
      deed={words.flush}
      busy={flush.isPending}
      error={flush.error}
      onConfirm={() => flush.mutate(undefined)}
    >
      {words.flushWhat}
    </Confirm>
  )
}

function Cancel({ queue: { key, waiting }, onClose }: DeedProps) {
  const cancel = useDeed(
    () => ask<{ cancelled: number }>(pathOf(key, 'cancel'), { method: 'POST', body: { confirm: key } }),
    ({ cancelled }) => words.cancelled(cancelled),
    onClose,
  )
  return (
    <Confirm
      open
      onClose={onClose}
      title={words.cancelTitle(key)}
      deed={words.cancel}
      word={key}
      busy={cancel.isPending}
      error={cancel.error}
      onConfirm={() => cancel.mutate(undefined)}
    >
      {words.cancelWhat(waiting)}
    </Confirm>
  )
}
