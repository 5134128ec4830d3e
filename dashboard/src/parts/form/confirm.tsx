// Asks for confirmation before an irreversible action, with a typed name if much would be lost.
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { parts } from '../../texts/parts.ts'
import { ErrorNote } from '../error-note.tsx'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { TextField } from './field.tsx'

interface ConfirmProps<Answer> {
  open?: boolean
  onClose: () => void
  title: string
  children: ReactNode
  /** The label of the button, such as `Delete the inbox`. */
  deed: string
  /** Sends the change. */
  change: () => Promise<Answer>
  /** Runs after the change, while the button is busy. It must close the dialog, unless `change` did. */
  onDone?: (answer: Answer) => unknown
  /** The change cannot be sent yet. */
  busy?: boolean
  /** An error from before the change. */
  error?: unknown
  /** The label of the other button, if `Cancel` could be taken for the change. */
  stay?: string
  /** The text that must be typed to confirm. */
  word?: string
}

export function Confirm<Answer>({
  open = true,
  onClose,
  title,
  children,
  deed,
  change,
  onDone = () => {},
  busy,
  error,
  stay = parts.cancel,
  word,
}: ConfirmProps<Answer>) {
  const sending = useMutation({ mutationFn: change, onSuccess: onDone })
  const [typed, setTyped] = useState('')
  const footer = (
    <>
      <Button onClick={onClose}>{stay}</Button>
      <Button
        variant="danger"
        busy={busy || sending.isPending}
        disabled={word !== undefined && typed !== word}
        onClick={() => sending.mutate()}
      >
        {deed}
      </Button>
    </>
  )
  return (
    <Dialog open={open} onClose={onClose} title={title} footer={footer}>
      <div className="grid gap-4">
        <div className="text-balance text-muted">{children}</div>
        {word !== undefined && (
          <TextField
            label={parts.typeToConfirm(word)}
            value={typed}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
        <ErrorNote error={sending.error ?? error} />
      </div>
    </Dialog>
  )
}
