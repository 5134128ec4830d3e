// Names with their values, one below the other on a phone, side by side on wider screens.
import { Fragment, type ReactNode } from 'react'

export function DefinitionList({ items }: { items: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="grid gap-x-6 sm:grid-cols-[minmax(120px,auto)_minmax(0,1fr)] sm:gap-y-2">
      {items.map(([name, value]) => (
        <Fragment key={name}>
          <dt className="text-sm text-faint sm:leading-[22px]">{name}</dt>
          <dd className="mb-2 min-w-0 break-words sm:mb-0">{value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}
