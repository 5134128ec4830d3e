// An inbox without mail: its address, and a first mail to itself.
import { MailPlus } from 'lucide-react'
import { Empty } from '../../parts/empty.tsx'
import { Button } from '../../parts/form/button.tsx'
import { CopyButton } from '../../parts/form/copy-button.tsx'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import { useGo } from './place.ts'

interface EmptyInboxProps {
  inboxId: string
  /** Empty for all inboxes together. */
  address: string
}

export function EmptyInbox({ inboxId, address }: EmptyInboxProps) {
  const go = useGo()
  const may = useMay('change')
  const write = () => go({ inboxId, compose: 'new', rcpt: address })
  return (
    <Empty
      icon={MailPlus}
      title={mail.emptyInbox}
      action={may && address && <Button onClick={write}>{mail.mailYourself}</Button>}
    >
      {mail.emptyInboxWhat}
      {address && (
        <span className="mt-2 flex items-center justify-center gap-1">
          <code className="min-w-0 break-all">{address}</code>
          <CopyButton text={address} what={address} />
        </span>
      )}
    </Empty>
  )
}
