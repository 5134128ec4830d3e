// The recipients of a message: each address becomes a chip on Enter, on a comma, or when the field loses focus.
import { X } from 'lucide-react'
import { type KeyboardEvent, useState } from 'react'
import { Field } from '../../../parts/form/field.tsx'
import { writing } from '../../../texts/writing.ts'
import type { Mailbox } from '../mail-queries.ts'
import { readAddresses, withoutTwins } from './addresses.ts'

interface RecipientsFieldProps {
  label: string
  value: readonly Mailbox[]
  onChange: (mailboxes: Mailbox[]) => void
  error?: string | null | undefined
  autoFocus?: boolean
}

export function RecipientsField({ label, value, onChange, error, autoFocus }: RecipientsFieldProps) {
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const take = (typed: string) => {
    const { mailboxes, rest } = readAddresses(typed)
    if (mailboxes.length > 0) onChange(withoutTwins([...value, ...mailboxes]))
    setText(rest)
    setFault(rest === '' ? null : writing.notAnAddress(rest))
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Backspace' && text === '') onChange(value.slice(0, -1))
    if (event.metaKey || event.ctrlKey || !['Enter', ',', ';'].includes(event.key)) return
    // Enter would submit the form before the address is added.
    if (text.trim() === '' && event.key === 'Enter') return event.preventDefault()
    event.preventDefault()
    take(text)
  }
  return (
    <Field label={label} error={fault ?? error}>
      {(ids) => (
        <div className="flex min-h-9 flex-wrap items-center gap-1.5 rounded-md border border-edge/70 bg-surface px-2 py-1 focus-within:border-accent focus-within:outline-2 focus-within:outline-accent/55">
          {value.map((mailbox) => (
            <Chip
              key={mailbox.email}
              mailbox={mailbox}
              onRemove={() => onChange(value.filter((one) => one !== mailbox))}
            />
          ))}
          <input
            {...ids}
            type="text"
            inputMode="email"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            // biome-ignore lint/a11y/noAutofocus: people open this dialog to write in it
            autoFocus={autoFocus}
            value={text}
            aria-label={writing.addRecipient(label)}
            onChange={(event) => {
              setText(event.target.value)
              setFault(null)
            }}
            onKeyDown={press}
            onBlur={() => text.trim() && take(text)}
            onPaste={(event) => {
              const pasted = event.clipboardData.getData('text')
              if (!pasted.includes('@')) return
              event.preventDefault()
              take(text + pasted)
            }}
            className="h-7 min-w-32 flex-1 bg-transparent text-base outline-none"
          />
        </div>
      )}
    </Field>
  )
}

function Chip({ mailbox: { name, email }, onRemove }: { mailbox: Mailbox; onRemove: () => void }) {
  return (
    <span className="flex h-7 max-w-full items-center gap-0.5 rounded-md bg-idle-soft pr-0.5 pl-2 text-sm">
      <span className="truncate" title={email}>
        {name ? `${name} <${email}>` : email}
      </span>
      <button
        type="button"
        aria-label={writing.removeRecipient(email)}
        onClick={onRemove}
        className="grid size-6 shrink-0 place-items-center rounded-sm text-muted hover:text-ink"
      >
        <X size={13} aria-hidden />
      </button>
    </span>
  )
}
