// Who is signed in, the theme, the keys, and the way out.
import { useNavigate } from '@tanstack/react-router'
import { BookOpen, Check, Keyboard, LogOut, Monitor, Moon, Settings, Sun } from 'lucide-react'
import { Menu } from '../parts/form/menu.tsx'
import type { MenuItem } from '../parts/form/open-menu.tsx'
import { Kbd } from '../parts/kbd.tsx'
import { chooseTheme, type ThemeChoice, useThemeChoice } from '../parts/theme.ts'
import { shell } from '../texts/shell.ts'
import { openOverlay } from './overlays.ts'
import { useSession } from './session.ts'
import { useSignOut } from './sign-out.ts'

const themeIcons = { system: Monitor, light: Sun, dark: Moon }

export function AccountMenu() {
  const { person } = useSession()
  const navigate = useNavigate()
  const signOut = useSignOut()
  const own: MenuItem[] = [
    { label: shell.settings, icon: Settings, onSelect: () => void navigate({ to: '/settings' }) },
    {
      label: shell.reference,
      icon: BookOpen,
      onSelect: () => void window.open('/docs', '_blank', 'noopener'),
    },
    {
      label: shell.shortcuts,
      icon: Keyboard,
      onSelect: () => openOverlay('shortcuts'),
      end: <Kbd keys="?" />,
    },
  ]
  const groups = [own, useThemeItems(), [{ label: shell.signOut, icon: LogOut, onSelect: signOut }]]
  return (
    <Menu
      align="start"
      groups={groups}
      header={<Who />}
      trigger={<Trigger name={person.name || person.email} />}
    />
  )
}

function useThemeItems(): MenuItem[] {
  const chosen = useThemeChoice()
  return (Object.keys(themeIcons) as ThemeChoice[]).map((choice) => ({
    label: shell.themes[choice],
    icon: themeIcons[choice],
    onSelect: () => chooseTheme(choice),
    end: choice === chosen ? <Check size={15} className="text-accent" aria-hidden /> : null,
  }))
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

function Trigger({ name, ...rest }: { name: string }) {
  return (
    <button
      type="button"
      {...rest}
      className="flex h-10 w-full min-w-0 items-center gap-2.5 rounded-md px-1.5 text-left hover:bg-hover"
    >
      <span
        aria-hidden
        title={name}
        className="grid size-6 shrink-0 place-items-center rounded-full bg-accent-soft text-xs font-semibold text-accent"
      >
        {name.slice(0, 1).toUpperCase()}
      </span>
      <span className="sr-only">{shell.account}: </span>
      <span className="min-w-0 flex-1 truncate text-muted">{name}</span>
    </button>
  )
}
