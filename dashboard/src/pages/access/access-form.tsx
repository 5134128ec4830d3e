// A form of the pages before the sign-in: its fields, its error, and its submit button.
import type { FormEvent, ReactNode } from 'react'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'

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
  const send = (event: FormEvent) => {
    event.preventDefault()
    sending.mutate()
  }
  return (
    <form onSubmit={send} className="grid gap-4">
      {children}
      <ErrorNote error={sending.error} />
      <Button type="submit" variant="primary" busy={sending.isPending}>
        {submit}
      </Button>
      {below}
    </form>
  )
}
