// A field that narrows a list and gets the focus with the key `/`.
import { useRef } from 'react'
import { useShortcut } from '../shortcut.ts'
import { TextField } from './field.tsx'

interface SearchFieldProps {
  label: string
  /** The group of its key in the list of shortcuts. */
  group: string
  value: string
  onChange: (text: string) => void
}

export function SearchField({ label, group, value, onChange }: SearchFieldProps) {
  const field = useRef<HTMLInputElement>(null)
  useShortcut({ keys: '/', label, group }, () => field.current?.focus())
  return (
    <TextField
      ref={field}
      type="search"
      label={label}
      labelHidden
      placeholder={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
