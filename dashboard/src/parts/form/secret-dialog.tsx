// A dialog that shows a secret once, and closes only after the user confirms that they have the secret.
import { type ReactNode, useState } from 'react'
import { parts } from '../../texts/parts.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { SecretOnce } from './secret-once.tsx'

interface SecretDialogProps {
  title: string
  secret: string
  /** The name of the secret: `the API key`. */
  what: string
  firstCall?: string | undefined
  /** Content below the secret. */
  children?: ReactNode
  /** The label of the button that continues. */
  done: string
  onDone: () => void
}

export function SecretDialog({ title, secret, what, firstCall, children, done, onDone }: SecretDialogProps) {
  const [isLeaving, setIsLeaving] = useState(false)
  const footer = (
    <Button variant="primary" onClick={onDone}>
      {isLeaving ? parts.closeWithout : done}
    </Button>
  )
  return (
    <Dialog open onClose={() => setIsLeaving(true)} title={title} width="large" footer={footer}>
      <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
        {isLeaving && (
          <p role="alert" className="rounded-md bg-wait-soft px-3 py-2.5 font-medium text-wait">
            {parts.copiedIt(what)}
          </p>
        )}
        <SecretOnce secret={secret} what={what} {...(firstCall ? { firstCall } : {})} />
        {children}
      </div>
    </Dialog>
  )
}
