// All pages, on a phone.
import { Dialog } from '../parts/form/dialog.tsx'
import { shell } from '../texts/shell.ts'
import { SideLinks } from './navigation.tsx'

export function PagesSheet({ onClose }: { onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title={shell.navigation}>
      <SideLinks onFollow={onClose} />
    </Dialog>
  )
}
