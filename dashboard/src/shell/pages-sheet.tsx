// The list of all pages on a phone.
import { Dialog } from '../parts/form/dialog.tsx'
import { shell } from '../texts/shell.ts'
import { SideLinks } from './navigation.tsx'
import type { PageGroups } from './pages.ts'

export function PagesSheet({ groups, onClose }: { groups: PageGroups; onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title={shell.navigation}>
      <SideLinks groups={groups} onFollow={onClose} />
    </Dialog>
  )
}
