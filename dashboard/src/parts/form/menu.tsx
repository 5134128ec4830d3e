// A menu button. The menu's code, as large as a third of a page's, is fetched when the user first points at or focuses
// a menu button.
import { cloneElement, type KeyboardEvent, lazy, Suspense, useState } from 'react'
import type { MenuProps } from './open-menu.tsx'

const fetchMenu = () => import('./open-menu.tsx')
const OpenMenu = lazy(async () => ({ default: (await fetchMenu()).OpenMenu }))

export function Menu(props: MenuProps) {
  const [isWanted, setIsWanted] = useState(false)
  const button = cloneElement(props.trigger, {
    'aria-haspopup': 'menu',
    'aria-expanded': false,
    onPointerEnter: () => void fetchMenu(),
    onFocus: () => void fetchMenu(),
    onClick: () => setIsWanted(true),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === 'ArrowDown') setIsWanted(true)
    },
  })
  if (!isWanted) return button
  return (
    <Suspense fallback={button}>
      <OpenMenu {...props} />
    </Suspense>
  )
}
