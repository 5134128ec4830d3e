// A menu that is open or can be: fetched when somebody first reaches for one.
import { DropdownMenu } from 'radix-ui'
import { parts } from '../texts/parts.ts'
import { classes } from './classes.ts'
import type { MenuItem, MenuProps } from './menu.tsx'

/** Opens at once: it takes the place of the button that was pressed. */
export function OpenMenu({ trigger, groups, header, align = 'end' }: MenuProps) {
  return (
    <DropdownMenu.Root modal={false} defaultOpen>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        {/* It stands outside of the page's landmarks, so it is one itself. */}
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
