// Things to do, behind one button.
import type { LucideIcon } from 'lucide-react'
import { DropdownMenu } from 'radix-ui'
import type { ReactElement, ReactNode } from 'react'
import { classes } from './classes.ts'

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

interface MenuProps {
  /** The button that opens it. */
  trigger: ReactElement
  /** Groups of items, with a line between them. */
  groups: readonly (readonly MenuItem[])[]
  header?: ReactNode
  align?: 'start' | 'end'
}

export function Menu({ trigger, groups, header, align = 'end' }: MenuProps) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
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
        'flex h-8 items-center gap-2.5 rounded-sm px-2.5 text-sm outline-none select-none data-disabled:opacity-50 data-highlighted:bg-hover',
        danger ? 'text-bad' : 'text-ink',
      )}
    >
      {Icon && <Icon size={15} aria-hidden className={danger ? '' : 'text-faint'} />}
      <span className="flex-1 truncate">{label}</span>
      {end}
    </DropdownMenu.Item>
  )
}
