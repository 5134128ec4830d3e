// Things to do, behind one button. What opens is fetched when somebody first reaches for one, for it is a third of a page.
import type { LucideIcon } from 'lucide-react'
import {
  cloneElement,
  type KeyboardEvent,
  lazy,
  type ReactElement,
  type ReactNode,
  Suspense,
  useState,
} from 'react'

export interface MenuItem {
  label: string
  icon?: LucideIcon
  onSelect: () => void
  /** It cannot be undone. */
  danger?: boolean
  disabled?: boolean
  /** What stands at its end, as keys or a mark. */
  end?: ReactNode
}

export interface MenuProps {
  /** The button that opens it. */
  trigger: ReactElement<Record<string, unknown>>
  /** Groups of items, with a line between them. */
  groups: readonly (readonly MenuItem[])[]
  header?: ReactNode
  align?: 'start' | 'end'
}

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
