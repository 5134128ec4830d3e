// Gives up what waits, of a queue or of an organization, after its name was typed.
import { Confirm } from '../parts/form/confirm.tsx'
import { useDeed } from './deed.ts'

interface CancelWaitingProps {
  /** Whose mail it is, as it must be typed. */
  name: string
  waiting: number
  words: {
    cancel: string
    cancelTitle: (name: string) => string
    cancelWhat: (waiting: number) => string
    cancelled: (count: number) => string
  }
  onCancel: () => Promise<{ cancelled: number }>
  onClose: () => void
}

export function CancelWaiting({ name, waiting, words, onCancel, onClose }: CancelWaitingProps) {
  const cancel = useDeed(onCancel, ({ cancelled }) => words.cancelled(cancelled), onClose)
  return (
    <Confirm
      open
      onClose={onClose}
      title={words.cancelTitle(name)}
      deed={words.cancel}
      word={name}
      busy={cancel.isPending}
      error={cancel.error}
      onConfirm={() => cancel.mutate(undefined)}
    >
      {words.cancelWhat(waiting)}
    </Confirm>
  )
}
