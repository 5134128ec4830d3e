// Finding mail in an inbox: words, and behind a button by direction, sender and day.
import { ListFilter, Search } from 'lucide-react'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { Button, IconButton } from '../../parts/button.tsx'
import { classes } from '../../parts/classes.ts'
import { Select, TextField } from '../../parts/field.tsx'
import { useShortcut } from '../../parts/shortcut.ts'
import { mail } from '../../texts/mail.ts'
import { isFiltered, useGo, usePlace } from './place.ts'

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
      {isOpen && <FilterFields />}
    </search>
  )
}

function Words() {
  const { q = '' } = usePlace()
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
        aria-label={mail.search}
        placeholder={mail.search}
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

/** Sets filters and leaves what is open open. */
function useFind() {
  const { inboxId, threadId, q, direction, from, since } = usePlace()
  const go = useGo()
  const latest = useRef({ go, place: { inboxId, threadId, q, direction, from, since } })
  latest.current = { go, place: { inboxId, threadId, q, direction, from, since } }
  return useRef((filters: Parameters<typeof go>[0]) => {
    latest.current.go({ ...latest.current.place, ...filters }, 'replace')
  }).current
}

function FilterFields() {
  const { direction = '', from = '', since = '' } = usePlace()
  const [sender, setSender] = useState(from)
  const find = useFind()
  const submit = (event: FormEvent) => {
    event.preventDefault()
    find({ from: sender.trim() })
  }
  return (
    <form onSubmit={submit} className="mt-2 grid gap-2 pb-1">
      <div className="grid grid-cols-2 gap-2 *:min-w-0">
        <Select
          label={mail.direction}
          value={direction}
          className="h-8 text-sm!"
          onChange={(event) => find({ direction: event.target.value })}
          options={Object.entries(mail.directions).map(([id, label]) => ({
            value: id === 'all' ? '' : id,
            label,
          }))}
        />
        <TextField
          label={mail.since}
          type="date"
          className="h-8 px-2! text-sm!"
          value={since}
          onChange={(event) => find({ since: event.target.value })}
        />
      </div>
      <TextField
        label={mail.from}
        type="email"
        value={sender}
        className="h-8 text-sm!"
        autoComplete="off"
        onChange={(event) => setSender(event.target.value)}
        onBlur={() => find({ from: sender.trim() })}
      />
      <Button
        size="small"
        onClick={() => {
          setSender('')
          find({ q: '', direction: '', from: '', since: '' })
        }}
      >
        {mail.clearFilters}
      </Button>
    </form>
  )
}
