// The menu itself, whose code is fetched when the user first points at or focuses a menu button.
import type { LucideIcon } from 'lucide-react'
import { DropdownMenu } from 'radix-ui'
import type { ReactElement, ReactNode } from 'react'
import { parts } from '../../texts/parts.ts'
import { classes } from '../classes.ts'

export interface MenuItem {
  label: string
  icon?: LucideIcon
  onSelect: () => void
  /** The action cannot be undone. */
  danger?: boolean
  disabled?: boolean
  /** The end of the item, such as its keys or a mark. */
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

/** Opens at once, because it replaces the button that was pressed. */
export function OpenMenu({ trigger, groups, header, align = 'end' }: MenuProps) {
  return (
    <DropdownMenu.Root modal={false} defaultOpen>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        {/* It is outside the page's landmarks, so it is a landmark itself. */}
        <section aria-label={parts.choices}>
          <DropdownMenu.Content
            align={align}
            sideOffset={6}
            collisionPadding={8}
            className="z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-52 animate-rise overflow-y-auto rounded-md bg-surface p-1 shadow-overlay"
          >
            {header && <div className="border-b px-2.5 pt-1.5 pb-2">{header}</div>}
            {groups.map((group, index) => (
              <DropdownMenu.Group
                key={group[0]?.label ?? index}
                className={classes(index > 0 && 'mt-1 border-t pt-1')}
              >
                {group.map((item) => (
                  <Item key={item.label} item={item} />
                ))}
              </DropdownMenu.Group>
            ))}
          </DropdownMenu.Content>
        </section>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}

function Item({ item: { label, icon: Icon, onSelect, danger, disabled, end } }: { item: MenuItem }) {
  return (
    <DropdownMenu.Item
      disabled={disabled ?? false}
      onSelect={onSelect}
      className={classes(
        'flex h-8 items-center gap-2.5 rounded-sm px-2.5 text-sm -outline-offset-2 select-none data-disabled:opacity-50 data-highlighted:bg-hover',
        danger ? 'text-bad' : 'text-ink',
      )}
    >
      {Icon && <Icon size={15} aria-hidden className={danger ? '' : 'text-faint'} />}
      <span className="flex-1 truncate">{label}</span>
      {end}
    </DropdownMenu.Item>
  )
}
