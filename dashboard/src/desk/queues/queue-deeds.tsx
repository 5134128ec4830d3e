// The operator's actions on a queue.
import { CirclePause, CirclePlay, Ellipsis, FastForward, XOctagon } from 'lucide-react'
import { useState } from 'react'
import { read } from '../../api/client.ts'
import { Button, IconButton } from '../../parts/form/button.tsx'
import { Confirm } from '../../parts/form/confirm.tsx'
import { Menu } from '../../parts/form/menu.tsx'
import { desk } from '../../texts/desk.ts'
import { api, type Queue } from '../client.ts'
import { useAction, useDone } from '../deed.ts'

const { queue: words } = desk

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
      {open === 'cancel' && <CancelAll queue={queue} onClose={close} />}
    </>
  )
}

function PauseOrResume({ queue: { key, state } }: { queue: Queue }) {
  const isPaused = state === 'paused'
  const params = { path: { queue: key } }
  const press = useAction(
    () =>
      read(
        isPaused
          ? api.POST('/queues/{queue}/resume', { params })
          : api.POST('/queues/{queue}/pause', { params }),
      ),
    () => (isPaused ? words.resumed(key) : words.paused(key)),
  )
  return (
    <Button variant={isPaused ? 'primary' : 'plain'} icon={isPaused ? CirclePlay : CirclePause} {...press}>
      {isPaused ? words.resume : words.pause}
    </Button>
  )
}

interface DeedProps {
  queue: Queue
  onClose: () => void
}

function Flush({ queue: { key }, onClose }: DeedProps) {
  const params = { path: { queue: key } }
  return (
    <Confirm
      onClose={onClose}
      title={words.flushTitle(key)}
      deed={words.flush}
      change={() => read(api.POST('/queues/{queue}/flush', { params }))}
      onDone={useDone(({ moved }) => words.flushed(moved), onClose)}
    >
      {words.flushWhat}
    </Confirm>
  )
}

function CancelAll({ queue: { key, waiting }, onClose }: DeedProps) {
  const given = { params: { path: { queue: key } }, body: { confirm: key } }
  return (
    <Confirm
      onClose={onClose}
      title={words.cancelTitle(key)}
      deed={words.cancel}
      stay={words.keep}
      word={key}
      change={() => read(api.POST('/queues/{queue}/cancel', given))}
      onDone={useDone(({ cancelled }) => words.cancelled(cancelled), onClose)}
    >
      {words.cancelWhat(waiting)}
    </Confirm>
  )
}
