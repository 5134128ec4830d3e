// A form of the pages before the sign-in: what is filled in, what went wrong, and the button that sends it.
import type { FormEvent, ReactNode } from 'react'
import { ErrorNote } from '../../parts/error-note.tsx'
import { Button } from '../../parts/form/button.tsx'

interface AccessFormProps {
  /** What its button says. */
  submit: string
  sending: { mutate: () => void; isPending: boolean; error: unknown }
  /** The fields. */
  children: ReactNode
  /** Other ways on, below the button. */
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
