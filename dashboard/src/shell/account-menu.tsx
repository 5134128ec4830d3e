// The menu of the signed-in person: the theme, the keyboard shortcuts, and signing out.
import { useNavigate } from '@tanstack/react-router'
import { BookOpen, LogOut, Settings } from 'lucide-react'
import { Menu } from '../parts/form/menu.tsx'
import type { MenuItem } from '../parts/form/open-menu.tsx'
import { shell } from '../texts/shell.ts'
import { MenuTrigger, shortcutsItem, useThemeItems } from './menu-items.tsx'
import { useSession } from './session.ts'
import { useSignOut } from './sign-out.ts'

export function AccountMenu() {
  const { person } = useSession()
  const name = person.name || person.email
  const navigate = useNavigate()
  const signOut = useSignOut()
  const own: MenuItem[] = [
    { label: shell.settings, icon: Settings, onSelect: () => void navigate({ to: '/settings' }) },
    {
      label: shell.reference,
      icon: BookOpen,
      onSelect: () => void window.open('/docs', '_blank', 'noopener'),
    },
    shortcutsItem,
  ]
  const groups = [own, useThemeItems(), [{ label: shell.signOut, icon: LogOut, onSelect: signOut }]]
  return (
    <Menu
      align="start"
      groups={groups}
      header={<Who />}
      trigger={<MenuTrigger label={shell.account} name={name} sign={name.slice(0, 1).toUpperCase()} />}
    />
  )
}

function Who() {
  const { person } = useSession()
  return (
    <>
      <p className="truncate text-sm font-medium">{person.name}</p>
      <p className="truncate text-sm text-faint">{person.email}</p>
    </>
  )
}
