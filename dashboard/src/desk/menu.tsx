// The menu of the desk: the theme, the keyboard shortcuts, and closing the desk.
import { LogOut, UserCog } from 'lucide-react'
import { wordsOf } from '../parts/error-note.tsx'
import { Menu } from '../parts/form/menu.tsx'
import { exactTime } from '../parts/time.tsx'
import { toast } from '../parts/toasts.ts'
import { MenuTrigger, shortcutsItem, useThemeItems } from '../shell/menu-items.tsx'
import { desk } from '../texts/desk.ts'
import { closeDesk, useSession } from './session.ts'

export function DeskMenu() {
  const { data: session } = useSession()
  const leave = () => void closeDesk().catch((error) => toast(wordsOf(error).title, 'bad'))
  const until = session && (
    <p className="text-sm text-faint">
      {desk.sessionUntil} {exactTime(session.endsAt)}
    </p>
  )
  return (
    <Menu
      align="start"
      header={until}
      groups={[[shortcutsItem], useThemeItems(), [{ label: desk.close, icon: LogOut, onSelect: leave }]]}
      trigger={
        <MenuTrigger label={desk.menu} name={session?.managedDomain ?? ''} sign={<UserCog size={14} />} />
      }
    />
  )
}
