// A dialog with a form: its fields, its error, and its submit button.
import { type ReactNode, useId } from 'react'
import { parts } from '../../texts/parts.ts'
import { ErrorNote } from '../error-note.tsx'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'

interface FormDialogProps {
  open?: boolean
  onClose: () => void
  title: string
  lead?: ReactNode
  width?: 'medium' | 'large'
  /** The label of the button. */
  submit: string
  /** The form cannot be sent yet. */
  disabled?: boolean
  sending: { isPending: boolean; error: unknown }
  onSubmit: (form: HTMLFormElement) => void
  /** The fields. */
  children: ReactNode
}

export function FormDialog({
  open = true,
  submit,
  disabled,
  sending,
  onSubmit,
  children,
  ...dialog
}: FormDialogProps) {
  const id = useId()
  const footer = (
    <>
      <Button onClick={dialog.onClose}>{parts.cancel}</Button>
      <Button variant="primary" type="submit" form={id} busy={sending.isPending} disabled={disabled}>
        {submit}
      </Button>
    </>
  )
  return (
    <Dialog {...dialog} open={open} footer={footer}>
      <form
        id={id}
        noValidate
        className="grid grid-cols-[minmax(0,1fr)] gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          onSubmit(event.currentTarget)
        }}
      >
        {children}
        <ErrorNote error={sending.error} />
      </form>
    </Dialog>
  )
}
