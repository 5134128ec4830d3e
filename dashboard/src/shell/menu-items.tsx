// The parts of a frame's menu: the button, the themes, and the list of shortcuts.
import { Check, Keyboard, Monitor, Moon, Sun } from 'lucide-react'
import type { ReactNode } from 'react'
import type { MenuItem } from '../parts/form/open-menu.tsx'
import { Kbd } from '../parts/kbd.tsx'
import { chooseTheme, type ThemeChoice, useThemeChoice } from '../parts/theme.ts'
import { shell } from '../texts/shell.ts'
import { openOverlay } from './overlays.ts'

const themeIcons = { system: Monitor, light: Sun, dark: Moon }

export const shortcutsItem: MenuItem = {
  label: shell.shortcuts,
  icon: Keyboard,
  onSelect: () => openOverlay('shortcuts'),
  end: <Kbd keys="?" />,
}

export function useThemeItems(): MenuItem[] {
  const chosen = useThemeChoice()
  return (Object.keys(themeIcons) as ThemeChoice[]).map((choice) => ({
    label: shell.themes[choice],
    icon: themeIcons[choice],
    onSelect: () => chooseTheme(choice),
    end: choice === chosen ? <Check size={15} className="text-accent" aria-hidden /> : null,
  }))
}

interface MenuTriggerProps {
  /** The purpose of the menu, for screen readers. */
  label: string
  /** The name of the menu's owner. A phone has no room for it. */
  name: string
  /** The content of the circle. */
  sign: ReactNode
}

export function MenuTrigger({ label, name, sign, ...rest }: MenuTriggerProps) {
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
        {sign}
      </span>
      <span className="sr-only">{label}: </span>
      <span className="min-w-0 flex-1 truncate text-muted">{name}</span>
    </button>
  )
}
