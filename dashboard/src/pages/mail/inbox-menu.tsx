// The actions on an inbox: copy its address or id, rename it, and delete it.

import { Copy, EllipsisVertical, Hash, Pencil, Trash2 } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { IconButton } from '../../parts/form/button.tsx'
import { useCopy } from '../../parts/form/copy-button.tsx'
import { Menu } from '../../parts/form/menu.tsx'
import type { MenuItem } from '../../parts/form/open-menu.tsx'
import { toast } from '../../parts/toasts.ts'
import { useMay } from '../../shell/session.ts'
import { mail } from '../../texts/mail.ts'
import type { Inbox } from './mail-queries.ts'

const DeleteInbox = lazy(async () => ({ default: (await import('./delete-inbox.tsx')).DeleteInbox }))
const RenameInbox = lazy(async () => ({ default: (await import('./rename-inbox.tsx')).RenameInbox }))

export function InboxMenu({ inbox }: { inbox: Inbox }) {
  const { id, address } = inbox
  const [open, setOpen] = useState<'rename' | 'delete' | null>(null)
  const close = () => setOpen(null)
  const may = useMay('change')
  const { copy } = useCopy()
  const copyItem = (label: string, text: string, icon = Copy): MenuItem => ({
    label,
    icon,
    onSelect: () => void copy(text).then(() => toast(mail.copied(text))),
  })
  const groups: MenuItem[][] = [
    [copyItem(mail.copyAddress, address), copyItem(mail.copyInboxId, id, Hash)],
    may ? [{ label: mail.renameInbox, icon: Pencil, onSelect: () => setOpen('rename') }] : [],
    may ? [{ label: mail.deleteInbox, icon: Trash2, danger: true, onSelect: () => setOpen('delete') }] : [],
  ]
  return (
    <>
      <Menu
        groups={groups.filter((group) => group.length > 0)}
        trigger={<IconButton icon={EllipsisVertical} label={mail.inboxActions} />}
      />
      <Suspense fallback={null}>
        {open === 'rename' && <RenameInbox inbox={inbox} onClose={close} />}
        {open === 'delete' && <DeleteInbox inbox={inbox} onClose={close} />}
      </Suspense>
    </>
  )
}
