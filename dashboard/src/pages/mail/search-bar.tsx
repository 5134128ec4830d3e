// The search in an inbox, or in all: by words, and under a button by direction, sender and day.

import { ListFilter, Search } from 'lucide-react'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { classes } from '../../parts/classes.ts'
import { IconButton } from '../../parts/form/button.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { mail } from '../../texts/mail.ts'
import { allInboxes, isFiltered, useFind, usePlace } from './place.ts'

const FilterFields = lazy(async () => ({ default: (await import('./filter-fields.tsx')).FilterFields }))
const typedMs = 300

export function SearchBar() {
  const place = usePlace()
  const [isOpen, setIsOpen] = useState(Boolean(place.direction || place.from || place.since))
  const hasFilters = isFiltered({ ...place, q: undefined })
  return (
    <search className="block shrink-0 border-b p-2">
      <div className="flex items-center gap-1">
        <Words />
        <IconButton
          size="small"
          icon={ListFilter}
          label={mail.filters}
          aria-expanded={isOpen}
          onClick={() => setIsOpen(!isOpen)}
          className={classes(hasFilters && 'text-accent!')}
        />
      </div>
      <Suspense fallback={null}>{isOpen && <FilterFields />}</Suspense>
    </search>
  )
}

function Words() {
  const { q = '', inboxId } = usePlace()
  const label = inboxId === allInboxes ? mail.searchAll : mail.search
  const input = useRef<HTMLInputElement>(null)
  const [text, setText] = useState(q)
  const find = useFind()
  useShortcut({ keys: '/', label: mail.keys.search, group: mail.group }, () => input.current?.focus())
  useEffect(() => setText(q), [q])
  useEffect(() => {
    if (text.trim() === q) return
    const timer = setTimeout(() => find({ q: text.trim() }), typedMs)
    return () => clearTimeout(timer)
  }, [text, q, find])
  return (
    <div className="relative min-w-0 flex-1">
      <Search size={14} aria-hidden className="absolute top-2 left-2.5 text-faint" />
      <input
        ref={input}
        type="search"
        aria-label={label}
        placeholder={label}
        title={mail.searchHint}
        value={text}
        maxLength={200}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape') return
          setText('')
          event.currentTarget.blur()
        }}
        className="control h-8 pl-8! text-sm"
      />
    </div>
  )
}
