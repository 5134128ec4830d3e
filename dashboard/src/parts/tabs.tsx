// Views of one object, shown one at a time.
import { Tabs as Primitive } from 'radix-ui'
import type { ReactNode } from 'react'

export interface Tab {
  id: string
  label: ReactNode
  content: ReactNode
}

interface TabsProps {
  label: string
  tabs: readonly Tab[]
  /** The id of the active tab. Without it the tabs keep their own state, starting with the first. */
  value?: string
  onChange?: (id: string) => void
}

export function Tabs({ label, tabs, value, onChange }: TabsProps) {
  const state = value === undefined ? { defaultValue: tabs[0]?.id ?? '' } : { value }
  return (
    <Primitive.Root {...state} onValueChange={(id) => onChange?.(id)} className="min-w-0">
      <Primitive.List aria-label={label} className="mb-4 flex gap-5 overflow-x-auto border-b">
        {tabs.map((tab) => (
          <Primitive.Trigger
            key={tab.id}
            value={tab.id}
            className="-mb-px flex h-9 items-center gap-2 border-b-2 border-transparent text-sm font-medium whitespace-nowrap text-muted -outline-offset-2 hover:text-ink data-[state=active]:border-accent data-[state=active]:text-ink"
          >
            {tab.label}
          </Primitive.Trigger>
        ))}
      </Primitive.List>
      {tabs.map((tab) => (
        <Primitive.Content key={tab.id} value={tab.id} className="min-w-0">
          {tab.content}
        </Primitive.Content>
      ))}
    </Primitive.Root>
  )
}
