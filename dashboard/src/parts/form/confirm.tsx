// Asks once more before something that cannot be undone; where that is much, the name must be typed.
import { type ReactNode, useState } from 'react'
import { parts } from '../../texts/parts.ts'
import { ErrorNote } from '../error-note.tsx'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { TextField } from './field.tsx'

interface ConfirmProps {
  open: boolean
  onClose: () => void
  title: string
  children: ReactNode
  /** What the button says: the deed, as `Delete the inbox`. */
  deed: string
  onConfirm: () => void
  busy?: boolean
  error?: unknown
  /** What the other button says, where `Cancel` could be taken for the deed. */
  stay?: string
  /** What must be typed before. */
  word?: string
}

export function Confirm({
  open,
  onClose,
  title,
  children,
  deed,
  onConfirm,
  busy,
  error,
  stay = parts.cancel,
  word,
}: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const footer = (
    <>
      <Button onClick={onClose}>{stay}</Button>
      <Button
        variant="danger"
        busy={busy}
        disabled={word !== undefined && typed !== word}
        onClick={onConfirm}
      >
        {deed}
      </Button>
    </>
  )
  return (
    <Dialog open={open} onClose={onClose} title={title} footer={footer}>
      <div className="grid gap-4">
        <div className="text-pretty text-muted">{children}</div>
        {word !== undefined && (
          <TextField
            label={parts.typeToConfirm(word)}
            value={typed}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
        <ErrorNote error={error} />
      </div>
    </Dialog>
  )
}
