// A form of the pages before the sign-in: its fields, its error, and its submit button.
import type { FormEvent, ReactNode } from 'react'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'
import { focusFault } from '../../parts/form/focus-fault.ts'

interface AccessFormProps {
  /** The label of the button. */
  submit: string
  sending: { mutate: () => void; isPending: boolean; error: unknown }
  /** The fields. */
  children: ReactNode
  /** Alternatives below the button. */
  below?: ReactNode
}

export function AccessForm({ submit, sending, children, below }: AccessFormProps) {
  // `checkValidity` sends an event to each invalid field, which then shows its own error instead of the browser’s bubble.
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    if (event.currentTarget.checkValidity()) sending.mutate()
    else focusFault(event.currentTarget)
  }
  return (
    <form noValidate onSubmit={send} className="grid gap-4">
      {children}
      <ErrorNote error={sending.error} />
      <Button type="submit" variant="primary" className="max-sm:h-11" busy={sending.isPending}>
        {submit}
      </Button>
      {below}
    </form>
  )
}
