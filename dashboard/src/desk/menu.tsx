// The theme, the keys, and the way out of the desk.
import { Check, Keyboard, LogOut, Monitor, Moon, Sun, UserCog } from 'lucide-react'
import { wordsOf } from '../parts/error-note.tsx'
import { Menu } from '../parts/form/menu.tsx'
import type { MenuItem } from '../parts/form/open-menu.tsx'
import { Kbd } from '../parts/kbd.tsx'
import { chooseTheme, type ThemeChoice, useThemeChoice } from '../parts/theme.ts'
import { exactTime } from '../parts/time.tsx'
import { toast } from '../parts/toasts.ts'
import { desk } from '../texts/desk.ts'
import { useCloseDesk, useSession } from './session.ts'

const themeIcons = { system: Monitor, light: Sun, dark: Moon }

export function DeskMenu({ onHelp }: { onHelp: () => void }) {
  const { data: session } = useSession()
  const chosen = useThemeChoice()
  const close = useCloseDesk()
  const themes: MenuItem[] = (Object.keys(themeIcons) as ThemeChoice[]).map((choice) => ({
    label: desk.themes[choice],
    icon: themeIcons[choice],
    onSelect: () => chooseTheme(choice),
    end: choice === chosen ? <Check size={15} className="text-accent" aria-hidden /> : null,
  }))
  const keys = { label: desk.shortcuts, icon: Keyboard, onSelect: onHelp, end: <Kbd keys="?" /> }
  const leave = () => void close().catch((error) => toast(wordsOf(error).title, 'bad'))
  return (
    <Menu
      align="start"
      header={session && <Until at={session.endsAt} />}
      groups={[[keys], themes, [{ label: desk.close, icon: LogOut, onSelect: leave }]]}
      trigger={<Trigger domain={session?.managedDomain ?? ''} />}
    />
  )
}

function Until({ at }: { at: string }) {
  return (
    <p className="text-sm text-faint">
      {desk.sessionUntil} {exactTime(at)}
    </p>
  )
}

function Trigger({ domain, ...rest }: { domain: string }) {
  return (
    <button
      type="button"
      aria-label={domain ? `${desk.menu}: ${domain}` : desk.menu}
      {...rest}
      className="flex h-10 w-full min-w-0 items-center gap-2.5 rounded-md px-1.5 text-left hover:bg-hover"
    >
      <span
        aria-hidden
        className="grid size-6 shrink-0 place-items-center rounded-full bg-accent-soft text-accent"
      >
        <UserCog size={14} />
      </span>
      <span className="hidden min-w-0 flex-1 truncate text-muted md:block">{domain}</span>
    </button>
  )
}
