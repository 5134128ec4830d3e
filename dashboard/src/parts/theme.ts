// The theme (light, dark, or the system's), chosen here and stored in this browser.
import { useSyncExternalStore } from 'react'

export type ThemeChoice = 'system' | 'light' | 'dark'

const stored = 'posthorn.theme'
const system = matchMedia('(prefers-color-scheme: dark)')
const watchers = new Set<() => void>()

export function themeChoice(): ThemeChoice {
  const theme = document.documentElement.dataset['theme']
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

export function chooseTheme(choice: ThemeChoice): void {
  if (choice === 'system') {
    delete document.documentElement.dataset['theme']
    localStorage.removeItem(stored)
  } else {
    document.documentElement.dataset['theme'] = choice
    localStorage.setItem(stored, choice)
  }
  for (const watcher of watchers) watcher()
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher)
  system.addEventListener('change', watcher)
  return () => {
    watchers.delete(watcher)
    system.removeEventListener('change', watcher)
  }
}

export function useThemeChoice(): ThemeChoice {
  return useSyncExternalStore(watch, themeChoice)
}

/** Returns the theme that is shown. */
export function useThemeName(): 'light' | 'dark' {
  return useSyncExternalStore(watch, () => {
    const choice = themeChoice()
    return choice === 'system' ? (system.matches ? 'dark' : 'light') : choice
  })
}
