// The theme setting: light, dark, or the system's.
import { Monitor, Moon, Sun } from 'lucide-react'
import { Card } from '../../parts/card.tsx'
import { type ThemeChoice as Choice, chooseTheme, useThemeChoice } from '../../parts/theme.ts'
import { settings } from '../../texts/settings.ts'
import { shell } from '../../texts/shell.ts'

const icons = { system: Monitor, light: Sun, dark: Moon }

export function ThemeChoice() {
  const chosen = useThemeChoice()
  return (
    <Card title={settings.theme.title} lead={settings.theme.lead}>
      <fieldset className="grid gap-2 sm:grid-cols-3">
        <legend className="sr-only">{settings.theme.title}</legend>
        {(Object.keys(icons) as Choice[]).map((choice) => (
          <ThemeOption key={choice} choice={choice} isChosen={choice === chosen} />
        ))}
      </fieldset>
    </Card>
  )
}

function ThemeOption({ choice, isChosen }: { choice: Choice; isChosen: boolean }) {
  const Icon = icons[choice]
  return (
    <label className="flex h-11 cursor-pointer items-center gap-2.5 rounded-md border border-line-strong px-3 hover:bg-hover has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent">
      <input
        type="radio"
        name="theme"
        value={choice}
        checked={isChosen}
        onChange={() => chooseTheme(choice)}
        className="sr-only"
      />
      <Icon size={16} aria-hidden className={isChosen ? 'text-accent' : 'text-faint'} />
      {shell.themes[choice]}
    </label>
  )
}
