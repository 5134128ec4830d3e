// The list of the shortcuts on the open page.
import { Dialog } from '../parts/form/dialog.tsx'
import { Kbd } from '../parts/kbd.tsx'
import { type Shortcut, useShortcuts } from '../parts/shortcut.ts'
import { shell } from '../texts/shell.ts'

export function ShortcutsSheet({ onClose }: { onClose: () => void }) {
  const groups = Map.groupBy(distinct(useShortcuts()), ({ group }) => group)
  return (
    <Dialog open onClose={onClose} title={shell.shortcuts} width="large">
      <div className="grid gap-x-10 gap-y-6 sm:grid-cols-2">
        {[...groups].map(([group, shortcuts]) => (
          <section key={group}>
            <h3 className="mb-2 text-sm font-semibold text-faint">{group}</h3>
            <dl className="grid gap-1.5">
              {shortcuts.map(({ keys, label }) => (
                <div key={keys} className="flex items-center justify-between gap-4">
                  <dt>{label}</dt>
                  <dd>
                    <Kbd keys={keys} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}

/** If several have the same keys, the latest wins. */
function distinct(shortcuts: readonly Shortcut[]): Shortcut[] {
  return [...new Map(shortcuts.map((one) => [one.keys, one])).values()]
}
