// The palette: finds anything by its name or id and opens it.
import { useNavigate } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { Dialog as Primitive } from 'radix-ui'
import { type KeyboardEvent, useId, useState } from 'react'
import { classes } from '../parts/classes.ts'
import { shell } from '../texts/shell.ts'
import { type Found, useFound } from './found.ts'

export function Palette({ onClose }: { onClose: () => void }) {
  return (
    <Primitive.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Primitive.Portal>
        <Primitive.Overlay className="fixed inset-0 z-40 animate-fade bg-[rgb(0_0_0/0.42)]" />
        <Primitive.Content
          aria-describedby={undefined}
          className="fixed inset-x-3 top-[8vh] z-50 mx-auto flex max-h-[70vh] max-w-xl animate-rise flex-col overflow-hidden rounded-lg bg-surface shadow-overlay sm:top-[14vh]"
        >
          <Primitive.Title className="sr-only">{shell.find}</Primitive.Title>
          <Finder onClose={onClose} />
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}

function Finder({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const { found, isSearching } = useFound(text)
  const navigate = useNavigate()
  const listId = useId()
  const active = Math.min(at, found.length - 1)
  const open = (one: Found | undefined) => {
    if (!one) return
    onClose()
    void navigate({ to: one.to, search: one.search ?? {} })
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step) setAt((active + step + found.length) % Math.max(1, found.length))
    else if (event.key === 'Enter') open(found[active])
    else return
    event.preventDefault()
  }
  return (
    <>
      <div className="flex h-13 shrink-0 items-center gap-3 border-b px-4">
        <Search size={17} className="text-faint" aria-hidden />
        <input
          role="combobox"
          aria-label={shell.findHint}
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={found[active] ? `${listId}-${active}` : undefined}
          placeholder={shell.findHint}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onKeyDown={press}
          onChange={(event) => {
            setText(event.target.value)
            setAt(0)
          }}
          className="h-full flex-1 bg-transparent text-lg outline-none"
        />
      </div>
      <Results id={listId} found={found} active={active} isSearching={isSearching} onOpen={open} />
    </>
  )
}

interface ResultsProps {
  id: string
  found: readonly Found[]
  active: number
  isSearching: boolean
  onOpen: (one: Found) => void
}

function Results({ id, found, active, isSearching, onOpen }: ResultsProps) {
  return (
    <div className="min-h-0 overflow-y-auto p-1.5">
      <div id={id} role="listbox" aria-label={shell.find}>
        {found.map((one, index) => (
          <Result
            key={one.id}
            id={`${id}-${index}`}
            one={one}
            heading={found[index - 1]?.group === one.group ? null : one.group}
            isActive={index === active}
            onOpen={onOpen}
          />
        ))}
      </div>
      <p
        role="status"
        className={classes('px-3 text-sm text-faint', found.length === 0 ? 'py-5' : 'sr-only')}
      >
        {found.length === 0 ? (isSearching ? shell.findSearching : shell.findNothing) : ''}
      </p>
      {found.length === 0 && !isSearching && <p className="px-3 pb-4 text-sm text-faint">{shell.findHelp}</p>}
    </div>
  )
}

interface ResultProps {
  id: string
  one: Found
  heading: string | null
  isActive: boolean
  onOpen: (one: Found) => void
}

function Result({ id, one, heading, isActive, onOpen }: ResultProps) {
  return (
    <>
      {heading && (
        <div role="presentation" className="px-3 pt-2.5 pb-1 text-xs font-medium text-faint">
          {heading}
        </div>
      )}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the focus and the keys */}
      <div
        id={id}
        role="option"
        tabIndex={-1}
        aria-selected={isActive}
        ref={(element) => {
          if (isActive) element?.scrollIntoView({ block: 'nearest' })
        }}
        onClick={() => onOpen(one)}
        className={classes(
          'flex h-9 cursor-pointer items-center gap-3 rounded-md px-3 hover:bg-hover',
          isActive && 'bg-hover outline-2 -outline-offset-2 outline-accent',
        )}
      >
        <span className="truncate">{one.label}</span>
        {one.note && <span className="ml-auto truncate text-sm text-faint">{one.note}</span>}
      </div>
    </>
  )
}
