// The list of all pages on a phone.
import { Dialog } from '../parts/form/dialog.tsx'
import { shell } from '../texts/shell.ts'
import { SideLinks } from './navigation.tsx'
import { pageGroups } from './pages.ts'
import { useSession } from './session.ts'

export function PagesSheet({ onClose }: { onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title={shell.navigation}>
      <SideLinks groups={pageGroups(useSession())} onFollow={onClose} />
    </Dialog>
  )
}
